package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/edihub/edihub/internal/app/demo"
)

func newDemoCommand(e *environment) *cobra.Command {
	var posts int
	var pause time.Duration
	cmd := &cobra.Command{
		Use:     "demo",
		Short:   "Run a hub with two demo partners that post real AS2 to it",
		Long:    "Starts a hub in a temporary folder and two partners who send each other orders through it, signed and encrypted, until Ctrl-C.",
		Example: "  edihub demo\n  edihub demo --posts 3",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.Run(cmd.Context(), demo.Options{Posts: posts, Pause: pause, Say: func(format string, a ...any) {
				_ = e.printf(format+"\n", a...) // a closed terminal ends the demo by its signal
			}})
		},
	}
	cmd.Flags().IntVar(&posts, "posts", 0, "end after this many orders; 0: go on until Ctrl-C")
	cmd.Flags().DurationVar(&pause, "pause", 2*time.Second, "between two orders")
	return cmd
}

package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/edihub/edihub/internal/store/sqlite"
)

// build is what the program knows of itself.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified"` // built from sources that were not committed
	Time     string `json:"time,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Schema   int    `json:"schema"` // of the embedded store
}

// buildInfo prefers what the linker was told over what the build recorded.
func buildInfo() build {
	b := build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Schema: sqlite.SchemaVersion}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		if b.Version == "" {
			b.Version = "unknown"
		}
		return b
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = "devel"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func newVersionCommand(e *environment) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "version", Short: "Version of this program and of the schema that it writes", Args: cobra.NoArgs,
		Example: "  edihub version --format json",
	}
	formatFlag(cmd, &format)
	cmd.RunE = func(*cobra.Command, []string) error {
		if err := checkFormat(format); err != nil {
			return err
		}
		b := buildInfo()
		if format == formatJSON {
			return e.printJSON(b)
		}
		rev := ""
		if b.Revision != "" {
			rev = " " + b.Revision
			if b.Modified {
				rev += " (modified)"
			}
		}
		return e.printf("edihub %s%s %s %s, schema %d\n", b.Version, rev, b.Go, b.Platform, b.Schema)
	}
	return cmd
}

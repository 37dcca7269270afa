// Command edihub is the hub and the tool of those who run it. This package holds flags and
// subcommands and nothing else.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the linker; without it the build information tells.
var version string

// gcPercent trades memory for processor time: a busy hub makes much garbage and keeps little, so a
// collection at twice the live heap comes too often. GOGC in the environment overrules it.
const gcPercent = 200

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program: it returns the exit code.
func run(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	e := newEnvironment(env, stdin, stdout, stderr)
	root := newRootCommand(e)
	root.SetArgs(args)
	return e.finish(root.ExecuteContext(ctx))
}

// commands are all subcommands in the order of the help.
func commands(e *environment) []*cobra.Command {
	return []*cobra.Command{
		newServeCommand(e),
		newDemoCommand(e),
		newLoadtestCommand(e),
		newSendCommand(e),
		newMessageCommand(e),
		newInterchangeCommand(e),
		newDeliveryCommand(e),
		newTransmissionCommand(e),
		newDeadCommand(e),
		newStageCommand(e),
		newInspectCommand(e),
		newValidateCommand(e),
		newAckCommand(e),
		newCheckCommand(e),
		newMigrateCommand(e),
		newKeygenCommand(e),
		newVersionCommand(e),
	}
}

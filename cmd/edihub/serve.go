package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/edihub/edihub/internal/app"
	"github.com/edihub/edihub/internal/observe"
)

func newServeCommand(e *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the hub",
		Long: `Runs the hub until SIGTERM or Ctrl-C. Without a configuration it runs embedded, keeps its data in ./edihub-data and
knows no partners. When it takes messages it prints one JSON line with its addresses on standard output. SIGHUP reads
certificates and partner records again.`,
		Example: "  edihub serve --config edihub.yaml\n  edihub serve --data ./edihub-data --as2-listen :8080",
		Args:    cobra.NoArgs,
	}
	flags := addConfigFlags(cmd, e)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := flags.load()
		if err != nil {
			return err
		}
		log, err := observe.NewLogger(cfg.Log.Level, cfg.Log.Format, e.stderr)
		if err != nil {
			return fail(exitUsage, "log: %w", err)
		}
		// Libraries write to the standard log where they know no other, net/http's client for example.
		defer zap.RedirectStdLog(log.Named("std"))()
		hub, err := app.New(app.Options{Config: cfg, Log: log, Version: version})
		if err != nil {
			return err
		}
		if err := hub.Start(cmd.Context()); err != nil {
			return err
		}
		ready := map[string]string{"event": "ready", "as2": hub.AS2Addr(), "admin": hub.AdminAddr()}
		if err := e.printJSON(ready); err != nil {
			log.Warn("stdout", zap.Error(err))
		}
		reloadUntil(cmd.Context(), hub, log)
		ctx, cancel := context.WithTimeout(context.Background(), app.StopWithin)
		defer cancel()
		if err := hub.Stop(ctx); err != nil {
			log.Warn("stopped_early", zap.Error(err))
		}
		return nil
	}
	return cmd
}

// reloadUntil reloads at each SIGHUP until ctx ends.
func reloadUntil(ctx context.Context, hub *app.Hub, log *zap.Logger) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
			if err := hub.Reload(ctx); err != nil {
				log.Error("reload_refused", zap.Error(err))
				continue
			}
			log.Info("reloaded")
		}
	}
}

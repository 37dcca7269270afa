package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/edihub/edihub/internal/config"
	"github.com/edihub/edihub/internal/store"
	"github.com/edihub/edihub/internal/store/sqlite"
)

type migrateResult struct {
	Data   string `json:"data"`
	From   int64  `json:"from"`
	To     int64  `json:"to"`
	DryRun bool   `json:"dry_run"`
}

func newMigrateCommand(e *environment) *cobra.Command {
	var to int64
	var dryRun, loss bool
	var format string
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the schema of the store to the version of this program",
		Long: `The hub does this itself when it starts; the command is for those who want to do it apart, and for the
way back. The hub must not run. Make a copy of the data folder first: a step down removes what the
newer version has stored.`,
		Example: `  edihub migrate --config edihub.yaml --dry-run
  edihub migrate --data /var/lib/edihub`,
		Args: cobra.NoArgs,
	}
	f := addConfigFlags(cmd, e)
	cmd.Flags().Int64Var(&to, "to", sqlite.SchemaVersion, "version of the schema")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what would be done")
	cmd.Flags().BoolVar(&loss, "allow-data-loss", false, "go down, which removes data")
	formatFlag(cmd, &format)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := checkFormat(format); err != nil {
			return err
		}
		c, err := f.load()
		if err != nil {
			return err
		}
		res, err := migrate(cmd.Context(), c, to, dryRun, loss)
		if err != nil {
			return err
		}
		if format == formatJSON {
			return e.printJSON(res)
		}
		switch {
		case res.From == res.To:
			return e.printf("%s: schema version %d, nothing to do\n", res.Data, res.To)
		case dryRun:
			return e.printf("%s: schema version %d would become %d\n", res.Data, res.From, res.To)
		}
		return e.printf("%s: schema version %d became %d\n", res.Data, res.From, res.To)
	}
	return cmd
}

func migrate(ctx context.Context, c *config.Config, to int64, dryRun, loss bool) (*migrateResult, error) {
	if c.Profile != config.Embedded {
		return nil, fail(exitUsage, "migrate knows the embedded store only; the profile is %s", c.Profile)
	}
	if to < 0 || to > sqlite.SchemaVersion {
		return nil, fail(exitUsage, "--to must be 0 to %d", sqlite.SchemaVersion)
	}
	from, err := sqlite.Version(ctx, c.Data)
	if err != nil {
		return nil, fail(exitUnreachable, "schema version: %w", err)
	}
	res := &migrateResult{Data: c.Data, From: from, To: to, DryRun: dryRun}
	if dryRun || from == to {
		return res, nil
	}
	if to < from && !loss {
		return nil, fail(exitUsage, "the step from %d down to %d removes data; make a copy and say --allow-data-loss", from, to)
	}
	err = sqlite.Migrate(ctx, c.Data, to)
	switch {
	case errors.Is(err, store.ErrInUse):
		return nil, fail(exitBad, "%w; stop it first", err)
	case err != nil:
		return nil, fail(exitBad, "%w", err)
	}
	return res, nil
}

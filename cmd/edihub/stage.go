package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

type stageItem struct {
	Stage   string `json:"stage"`
	Workers int    `json:"workers"`
	Min     int    `json:"min"`
	Max     int    `json:"max"`
	Paused  bool   `json:"paused"`
	Total   struct {
		Workers   int     `json:"workers"`
		Alive     int     `json:"alive"`
		InFlight  int     `json:"in_flight"`
		Ready     int64   `json:"ready"`
		Parked    int64   `json:"parked"`
		Retry     int64   `json:"retry"`
		Dead      int64   `json:"dead"`
		OldestAge float64 `json:"oldest_age_s"`
		Rate      float64 `json:"rate_per_s"`
	} `json:"total"`
	Nodes []json.RawMessage `json:"nodes"`
}

func newStageCommand(e *environment) *cobra.Command {
	return group("stage", "Pools of workers: parser, validator, router, sender",
		"Counts of workers are per node. A change takes effect at once and survives restarts.",
		`  edihub stage list
  edihub stage scale validator 16
  edihub stage pause sender --reason "partner maintenance"
  edihub stage resume sender`,
		newStageList(e), newStageScale(e), newStagePause(e, "pause", true), newStagePause(e, "resume", false))
}

func newStageList(e *environment) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the pools with workers and queues", Args: cobra.NoArgs}
	f := addClientFlags(cmd, e)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := f.connect()
		if err != nil {
			return err
		}
		defer c.close()
		var p struct {
			Items []json.RawMessage `json:"items"`
		}
		if err := c.get(cmd.Context(), "/v1/stages", nil, &p); err != nil {
			return err
		}
		return e.printStages(p.Items, f.format)
	}
	return cmd
}

func (e *environment) printStages(items []json.RawMessage, format string) error {
	if format == formatJSON {
		for _, raw := range items {
			if err := e.printRaw(raw); err != nil {
				return err
			}
		}
		return nil
	}
	t := newTable("STAGE", "WORKERS", "MIN", "MAX", "PAUSED", "NODES", "ALIVE", "IN-FLIGHT", "READY", "PARKED", "RETRY", "DEAD", "OLDEST", "PER-SECOND")
	for _, raw := range items {
		var v stageItem
		if err := json.Unmarshal(raw, &v); err != nil {
			return fail(exitUnreachable, "the answer of the hub cannot be read: %w", err)
		}
		oldest := ""
		if v.Total.OldestAge > 0 {
			oldest = time.Duration(v.Total.OldestAge * float64(time.Second)).Round(time.Second).String()
		}
		n := func(i int64) string { return strconv.FormatInt(i, 10) }
		t.row(v.Stage, strconv.Itoa(v.Workers), strconv.Itoa(v.Min), strconv.Itoa(v.Max), strconv.FormatBool(v.Paused), strconv.Itoa(len(v.Nodes)),
			strconv.Itoa(v.Total.Alive), strconv.Itoa(v.Total.InFlight), n(v.Total.Ready), n(v.Total.Parked), n(v.Total.Retry), n(v.Total.Dead), oldest,
			fmt.Sprintf("%.1f", v.Total.Rate))
	}
	return t.print(e)
}

func newStageScale(e *environment) *cobra.Command {
	var lowest, highest int
	var reason string
	cmd := &cobra.Command{
		Use: "scale NAME WORKERS", Short: "Set the number of workers of a pool on each node", Args: cobra.ExactArgs(2),
		Example: `  edihub stage scale validator 16
  edihub stage scale sender 32 --max 64`,
	}
	f := addClientFlags(cmd, e)
	cmd.Flags().IntVar(&lowest, "min", 0, "fewest workers that the scaler leaves")
	cmd.Flags().IntVar(&highest, "max", 0, "most workers that the scaler starts")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		n, err := strconv.Atoi(args[1])
		if err != nil || n < 0 {
			return fail(exitUsage, "%q is not a number of workers", args[1])
		}
		in := map[string]any{"workers": n}
		if cmd.Flags().Changed("min") {
			in["min"] = lowest
		}
		if cmd.Flags().Changed("max") {
			in["max"] = highest
		}
		return e.changeStage(cmd, f, args[0], reason, in)
	}
	return cmd
}

func newStagePause(e *environment, verb string, paused bool) *cobra.Command {
	var reason string
	short := "Pause a pool: what is in hand is finished, nothing new is begun"
	if !paused {
		short = "Let a pool go on"
	}
	cmd := &cobra.Command{Use: verb + " NAME", Short: short, Args: cobra.ExactArgs(1)}
	f := addClientFlags(cmd, e)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return e.changeStage(cmd, f, args[0], reason, map[string]any{"paused": paused})
	}
	return cmd
}

func (e *environment) changeStage(cmd *cobra.Command, f *clientFlags, stage, reason string, in map[string]any) error {
	c, err := f.connect()
	if err != nil {
		return err
	}
	defer c.close()
	if reason != "" {
		in["reason"] = reason
	}
	var raw json.RawMessage
	if err := c.call(cmd.Context(), answerTimeout, http.MethodPatch, "/v1/stages/"+url.PathEscape(stage), nil, in, &raw); err != nil {
		return err
	}
	return e.printStages([]json.RawMessage{raw}, f.format)
}

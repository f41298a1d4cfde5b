package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"cellserver/internal/app/usage"
	"cellserver/internal/base/buildinfo"
	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/decide/namedlimit/limitsfile"
	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/replication"
	"cellserver/internal/limiter"
	"cellserver/internal/migrate/transfer"
)

const checkHelp = `Read all files of a stopped server's data directory and report whether they can be read. Nothing is changed.

For each file it prints the number of frames, records and bytes, and the byte at which it is damaged or gone. Limits and
overrides by commands that are gone are damage, too. An unreadable end of the last file is what a server drops and logs: the
line says whether it is a write that was under way when the server ended, or complete and damaged. Live keys are counted by
kind, values too, unless all are funnels.

With --json it prints {"directory", "state", "problem", "files": [{"name", "state", "frames", "records", "bytes", "torn_bytes",
"problem", "dropped"}, ...], "others": [names], "last_seen", "live_keys", "live_keys_by_kind": [{"kind", "keys"}, ...]}. A state is
ok, damaged or newer, which means written by a later version; torn_bytes are those of the end that is dropped, and
dropped says what they are.`

func checkCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "check [flags] DIR", Short: "check the files of a data directory", Long: checkHelp, Example: "  cellserver check /var/lib/cellserver",
		Args: usage.ExactlyOne("DIR"), Annotations: usage.Exits("everything can be read", "damage, or an error"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if isURL(args[0]) { // not shown: it may have a password
				return usage.Errorf("check: DIR is a URL; give the data directory of a stopped server")
			}
			return checkDir(cmd.Context(), args[0], asJSON, cmd.OutOrStdout())
		},
	}
	jsonFlag(cmd.Flags(), &asJSON)
	return cmd
}

func checkDir(ctx context.Context, path string, asJSON bool, stdout io.Writer) error {
	report, keys, err := transfer.CheckDir(ctx, path, time.Now().UnixNano())
	if err != nil {
		return failed(ctx, "check", err, "not all was checked")
	}
	if report.Err == nil && len(report.Files) == 0 {
		return fmt.Errorf("check: %s is not a data directory: it has neither a MANIFEST nor named limits; give the one that --data-dir names", path)
	}
	if asJSON {
		err = printJSON(stdout, checkDocumentOf(path, &report, keys))
	} else {
		err = printReport(stdout, &report, keys)
	}
	if err != nil {
		return err
	}
	newer := report.Newer()
	switch {
	case newer != nil:
		return fmt.Errorf("check: %s was written by a later version than %s: %w",
			path, buildinfo.Version, newer)
	case report.Damaged():
		return fmt.Errorf("check: %s is damaged: copy it, and start the server with --data-recover to keep what can be read, or restore a backup", path)
	}
	return nil
}

// unreadable says why a file cannot be read: damaged, or sound but of a later version.
func unreadable(err error) string {
	if errors.Is(err, persist.ErrNewer) {
		return "NEWER: " + err.Error()
	}
	return "DAMAGED: " + err.Error()
}

// printReport prints what checkDocument has, for people.
func printReport(w io.Writer, r *persist.Report, keys *transfer.LiveKeys) (err error) {
	line := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(w, format+"\n", args...)
		}
	}
	if r.Err != nil {
		line("MANIFEST  %s", unreadable(r.Err))
	}
	for _, f := range r.Files {
		state := "ok"
		switch {
		case f.Err != nil:
			state = unreadable(f.Err)
		case f.Tail.Bytes > 0:
			state = "ok, but the server drops its end: " + f.Tail.String()
		}
		switch f.Name {
		case limitsfile.KeptName:
			line("%s  %s, %d bytes  %s", f.Name, counted(f.Records, "named limit"), f.Bytes, state)
		case limitsfile.OverridesName:
			line("%s  %s, %d bytes  %s", f.Name, counted(f.Records, "override"), f.Bytes, state)
		case replication.RoleName, envoyconfig.KeptName:
			line("%s  %d bytes  %s", f.Name, f.Bytes, state)
		default:
			line("%s  %s, %s, %d bytes  %s", f.Name, counted(f.Frames, "frame"), counted(f.Records, "record"), f.Bytes, state)
		}
	}
	fate := "the server removes it"
	if r.Recovering {
		fate = "a recovery has not ended, and the server keeps it aside"
	}
	for _, name := range r.Others {
		line("%s  not part of the data; %s", name, fate)
	}
	if r.ClockNs > 0 {
		line("last seen  %s", time.Unix(0, r.ClockNs).UTC().Format(time.RFC3339Nano))
	}
	total := keys.Count()
	line("live keys  %d", total)
	for kind, n := range keys.CountKinds() {
		if n > 0 && (n < total || kind != int(limiter.Funnel)) {
			line("           %d %s", n, limiter.Kind(kind))
		}
	}
	return err
}

type checkDocument struct {
	Directory string         `json:"directory"`
	State     string         `json:"state"`
	Problem   string         `json:"problem"` // of the manifest
	Files     []checkedFile  `json:"files"`
	Others    []string       `json:"others"` // not part of the data
	LastSeen  *time.Time     `json:"last_seen"`
	LiveKeys  int64          `json:"live_keys"`
	ByKind    []countedKinds `json:"live_keys_by_kind"`
}

type checkedFile struct {
	Name      string `json:"name"`
	State     string `json:"state"`
	Frames    int64  `json:"frames"`
	Records   int64  `json:"records"`
	Bytes     int64  `json:"bytes"`
	TornBytes int64  `json:"torn_bytes"`
	Problem   string `json:"problem"`
	Dropped   string `json:"dropped,omitempty"` // what the torn bytes are
}

type countedKinds struct {
	Kind string `json:"kind"`
	Keys int64  `json:"keys"`
}

func checkDocumentOf(path string, r *persist.Report, keys *transfer.LiveKeys) checkDocument {
	d := checkDocument{
		Directory: path, Files: []checkedFile{}, Others: append([]string{}, r.Others...),
		LiveKeys: int64(keys.Count()), ByKind: []countedKinds{},
	}
	d.State, d.Problem = stateOf(r.Err)
	for _, f := range r.Files {
		state, problem := stateOf(f.Err)
		dropped := ""
		if f.Tail.Bytes > 0 {
			dropped = f.Tail.String()
		}
		d.Files = append(d.Files, checkedFile{f.Name, state, f.Frames, f.Records, f.Bytes, f.Tail.Bytes, problem, dropped})
		if d.State == stateOK {
			d.State = state
		}
	}
	if r.ClockNs > 0 {
		at := time.Unix(0, r.ClockNs).UTC()
		d.LastSeen = &at
	}
	for kind, n := range keys.CountKinds() {
		if n > 0 {
			d.ByKind = append(d.ByKind, countedKinds{limiter.Kind(kind).String(), int64(n)})
		}
	}
	return d
}

const stateOK = "ok"

func stateOf(err error) (state, problem string) {
	switch {
	case err == nil:
		return stateOK, ""
	case errors.Is(err, persist.ErrNewer):
		return "newer", err.Error()
	}
	return "damaged", err.Error()
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"cellserver/lab/clients/internal/program"
	"cellserver/lab/clients/internal/table"
	"cellserver/lab/clients/internal/target"
)

// concurrency is how many clients are tested at a time, each with its own server: most of a program's time is
// the startup of its language.
const concurrency = 3

// runner tests clients.
type runner struct {
	dir  string // for builds
	spec target.Spec

	mu  sync.Mutex // guards log
	log io.Writer
}

// outcome is the result of a client.
type outcome struct {
	client  client
	row     table.Row
	missing string // packages to install
	err     error
}

// runAll tests clients and returns the results in their order.
func (r *runner) runAll(ctx context.Context, clients []client) []outcome {
	return program.InTurns(clients, concurrency, func(c client) outcome {
		start := time.Now()
		o := r.try(ctx, c)
		r.say(o, time.Since(start))
		return o
	})
}

func (r *runner) say(o outcome, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	result := "ok"
	if o.missing != "" {
		result = "missing"
	} else if o.err != nil {
		result = "FAILED"
	}
	_, _ = fmt.Fprintf(r.log, "%-26s %-7s %5.1f s\n", o.client.name, result, took.Seconds())
}

func (r *runner) try(ctx context.Context, c client) outcome {
	o := outcome{client: c, row: table.Row{Client: c.name}}
	if o.missing = missing(ctx, c); o.missing != "" {
		return o
	}
	if o.err = r.build(ctx, c); o.err != nil {
		return o
	}
	var result program.Result
	result, o.err = r.runProgram(ctx, c)
	o.row.Version, o.row.Notes = result.Version, result.Notes
	var failures error
	o.row.Cells, failures = judge(c, result)
	o.err = errors.Join(o.err, failures)
	return o
}

// missing returns the packages that are not installed.
func missing(ctx context.Context, c client) (packages string) {
	for _, n := range c.needs {
		if exec.CommandContext(ctx, n.argv[0], n.argv[1:]...).Run() != nil {
			packages = strings.TrimSpace(packages + " " + n.packages)
		}
	}
	return packages
}

// words replaces {out} in a command.
func (r *runner) words(c client, argv []string) []string {
	words := slices.Clone(argv)
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], "{out}", filepath.Join(r.dir, c.dir))
	}
	return words
}

func (r *runner) build(ctx context.Context, c client) error {
	for _, argv := range c.build {
		argv = r.words(c, argv)
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Dir = c.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, out)
		}
	}
	return nil
}

// runProgram runs the client's program with its own server.
func (r *runner) runProgram(ctx context.Context, c client) (program.Result, error) {
	spec := r.spec
	var err error
	if spec.Dir, err = os.MkdirTemp(r.dir, "server-"); err != nil {
		return program.Result{}, fmt.Errorf("make a directory for the server: %w", err)
	}
	server, err := target.Start(ctx, spec)
	if err != nil {
		return program.Result{}, err
	}
	defer server.Stop()
	address := func(scheme string, port, database int) string {
		u := url.URL{Scheme: scheme, Host: "127.0.0.1:" + strconv.Itoa(port), Path: "/" + strconv.Itoa(database)}
		// Not by url.UserPassword, which does not escape what other languages' parsers require.
		return strings.Replace(u.String(), "://", "://:"+url.QueryEscape(r.spec.Password)+"@", 1)
	}
	return program.Run(ctx, program.Program{
		Dir: c.dir, Argv: r.words(c, c.run), Restart: server.Restart,
		Env: map[string]string{
			"REDIS_URL":     address("redis", server.Port, 0),
			"REDIS_DB3_URL": address("redis", server.Port, 3),
			"REDIS_TLS_URL": address("rediss", server.TLSPort, 0),
			"REDIS_CA":      r.spec.Files.CA,
		},
	})
}

// judge requires exactly the client's checks to be reported.
func judge(c client, result program.Result) (cells map[string]string, failures error) {
	cells = map[string]string{}
	var missing []string
	for _, check := range checks() {
		line, reported := result.Checks[check.Name]
		expected := check.Name != "scrape" && (check.Name != "cache" || c.caches) && (check.Name != "increx" || c.increx)
		if c.checks != nil {
			expected = slices.Contains(c.checks, check.Name)
		}
		switch {
		case !expected && reported:
			failures = errors.Join(failures, fmt.Errorf("%s: reported, but not one of its checks", check.Name))
		case !expected || line.Skip != "":
		case line.OK:
			cells[check.Name] = table.Passed
		case !reported:
			cells[check.Name] = table.Failed
			missing = append(missing, check.Name)
		default:
			cells[check.Name] = table.Failed
			failures = errors.Join(failures, fmt.Errorf("%s: %s", check.Name, line.Error))
		}
	}
	if len(missing) > 0 {
		failures = errors.Join(failures, fmt.Errorf("not reported: %s", strings.Join(missing, ", ")))
	}
	for _, name := range slices.Sorted(maps.Keys(result.Checks)) {
		if !slices.ContainsFunc(checks(), func(check table.Check) bool { return check.Name == name }) {
			failures = errors.Join(failures, fmt.Errorf("%s: reported, but no check", name))
		}
	}
	return cells, failures
}

// Package program runs a client's program and collects its reports. Its functions are safe for concurrent
// use.
package program

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"cellserver/lab/clients/internal/report"
)

// Program is a program to run.
type Program struct {
	Dir  string
	Argv []string
	Env  map[string]string // in addition to the runner's own
	// Restart restarts the server at the program's request.
	Restart func(context.Context) error
}

// InTurns tries all, some at a time, and returns the results in their order.
func InTurns[P, R any](all []P, atOnce int, try func(P) R) []R {
	results := make([]R, len(all))
	turns := make(chan struct{}, atOnce)
	var running sync.WaitGroup
	for i, p := range all {
		running.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			results[i] = try(p)
		})
	}
	running.Wait()
	return results
}

// Result holds the reports of a program.
type Result struct {
	Version string
	Checks  map[string]report.Line
	// Notes are the reasons for which checks were skipped, each once.
	Notes []string
}

const (
	runTimeout = 20 * time.Minute
	// killDelay bounds the exit of a stopped program.
	killDelay = 2 * time.Second
	// stderrBytes of a program's standard error are in an error.
	stderrBytes = 2000
)

// Run returns once the program has exited. With an error, the result holds the reports so far. A failed check
// is part of the result, not an error.
func Run(ctx context.Context, p Program) (Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, runTimeout, fmt.Errorf("it has not ended after %s", runTimeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, p.Argv[0], p.Argv[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = p.Dir, os.Environ(), killDelay
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		cmd.Env = append(cmd.Env, name+"="+p.Env[name])
	}
	stderr := new(bytes.Buffer)
	cmd.Stderr = stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return Result{}, fmt.Errorf("program: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return Result{}, fmt.Errorf("program: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return Result{}, fmt.Errorf("program: start: %w", err)
	}
	result, err := listen(ctx, p, stdout, stdin)
	if err != nil {
		cancel() // it may be waiting for input
	}
	ended := cmd.Wait()
	if err == nil && result.failed() {
		ended = nil // its exit code has the same meaning
	}
	if err = errors.Join(err, context.Cause(ctx), ended); err != nil && ended != nil {
		text := strings.TrimSpace(stderr.String())
		return result, fmt.Errorf("program: %w: %s", err, text[max(0, len(text)-stderrBytes):])
	}
	return result, nil
}

// listen reads the reports of the program until it closes its output.
func listen(ctx context.Context, p Program, stdout io.Reader, stdin io.Writer) (Result, error) {
	result := Result{Checks: map[string]report.Line{}}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		text := lines.Text()
		if text == report.RestartRequest {
			if err := p.Restart(ctx); err != nil {
				return result, err
			}
			if _, err := fmt.Fprintln(stdin, report.RestartDone); err != nil {
				return result, fmt.Errorf("program: report the restart: %w", err)
			}
			continue
		}
		if err := result.add(text); err != nil {
			return result, err
		}
	}
	if err := lines.Err(); err != nil {
		return result, fmt.Errorf("program: read its output: %w", err)
	}
	return result, nil
}

func (r *Result) add(text string) error {
	var line report.Line
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&line); err != nil {
		return fmt.Errorf("program: it printed %.200q, which is not a report: %w", text, err)
	}
	if line.Version != "" {
		r.Version = line.Version
	}
	if line.Check == "" {
		return nil
	}
	if _, twice := r.Checks[line.Check]; twice {
		return fmt.Errorf("program: it reports %s twice", line.Check)
	}
	if !line.OK && line.Skip == "" && line.Error == "" {
		line.Error = "the program gave no reason"
	}
	r.Checks[line.Check] = line
	if line.Skip != "" && !slices.Contains(r.Notes, line.Skip) {
		r.Notes = append(r.Notes, line.Skip)
	}
	return nil
}

// failed reports whether the check failed.
func (r *Result) failed() bool {
	for _, line := range r.Checks {
		if line.Error != "" {
			return true
		}
	}
	return false
}

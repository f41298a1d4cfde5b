package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	turns "cellserver/lab/clients/internal/program"
	"cellserver/lab/clients/internal/target"
)

const (
	// attempts bounds how often a program runs until it sees the same on both servers: a window may end
	// between two of its calls.
	attempts = 3
	// concurrency is how many programs run at a time, on three servers each. They mostly wait for windows.
	concurrency = 2
	runTimeout  = 10 * time.Minute
	// stderrBytes of a program's standard error are in an error.
	stderrBytes = 2000
)

// runner runs programs on its servers.
type runner struct {
	dir             string // for builds, and as the servers' directory
	files           target.Files
	control, tested []string // commands of the servers
	strict          []string // of the tested one with --require-ttl
	texts           string

	mu  sync.Mutex // guards log
	log io.Writer
}

// seen is what a part of a library's work saw on a server.
type seen struct {
	Library string   `json:"library"`
	Version string   `json:"version"`
	Part    string   `json:"part"`
	Saw     []string `json:"saw"`
	Error   string   `json:"error"`
}

// result is what a program saw on the servers.
type result struct {
	program                 program
	control, tested, strict []seen
	missing                 string // packages to install
	err                     error
}

// runAll runs programs and returns the results in their order.
func (r *runner) runAll(ctx context.Context, programs []program) []result {
	return turns.InTurns(programs, concurrency, func(p program) result {
		start := time.Now()
		seen := r.try(ctx, p)
		r.say("%-10s %5.1f s", p.name, time.Since(start).Seconds())
		return seen
	})
}

func (r *runner) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = fmt.Fprintf(r.log, format+"\n", args...)
}

func (r *runner) try(ctx context.Context, p program) result {
	res := result{program: p}
	for _, n := range p.needs {
		if exec.CommandContext(ctx, n.argv[0], n.argv[1:]...).Run() != nil {
			res.missing = strings.TrimSpace(res.missing + " " + n.packages)
		}
	}
	if res.missing != "" {
		return res
	}
	for _, argv := range p.build {
		if _, res.err = r.command(ctx, p, argv, nil); res.err != nil {
			return res
		}
	}
	for range attempts {
		if r.runOnce(ctx, &res); res.err != nil || len(surprises(res)) == 0 {
			break
		}
	}
	return res
}

// runOnce runs a program on new servers, at the same time.
func (r *runner) runOnce(ctx context.Context, res *result) {
	now := time.Now()
	var errs [3]error
	var running sync.WaitGroup
	running.Go(func() { res.control, errs[0] = r.on(ctx, res.program, r.control, now) })
	running.Go(func() { res.tested, errs[1] = r.on(ctx, res.program, r.tested, now) })
	running.Go(func() { res.strict, errs[2] = r.on(ctx, res.program, r.strict, now) })
	running.Wait()
	res.err = errors.Join(errs[:]...)
}

// on runs a program on a new server.
func (r *runner) on(ctx context.Context, p program, server []string, now time.Time) ([]seen, error) {
	dir, err := os.MkdirTemp(r.dir, "server-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the server: %w", err)
	}
	s, err := target.Start(ctx, target.Spec{Argv: server, Dir: dir, Password: password, Files: r.files})
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	if p.run == nil {
		return replayAll(ctx, streamsDir, r.texts, address(s.Port), now)
	}
	const gonePort = 1 // nothing listens on it
	out, err := r.command(ctx, p, p.run, map[string]string{
		"REDIS_URL": address(s.Port), "REDIS_GONE_URL": address(gonePort),
	})
	if err != nil {
		return nil, fmt.Errorf("on %s: %w", filepath.Base(server[0]), err)
	}
	return decode(out)
}

func address(port int) string {
	u := url.URL{Scheme: "redis", User: url.UserPassword("", password), Host: "127.0.0.1:" + strconv.Itoa(port)}
	return u.String() + "/0"
}

// command runs a command in a program's directory and returns its output. In argv, {out} is the file to
// build.
func (r *runner) command(
	ctx context.Context, p program, argv []string, env map[string]string,
) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	argv = slices.Clone(argv)
	for i := range argv {
		argv[i] = strings.ReplaceAll(argv[i], "{out}", filepath.Join(r.dir, p.name))
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.dir, os.Environ(), &stdout, &stderr
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(stderr.String())
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, text[max(0, len(text)-stderrBytes):])
	}
	return stdout.Bytes(), nil
}

func decode(out []byte) (all []seen, err error) {
	decoder := json.NewDecoder(bytes.NewReader(out))
	decoder.DisallowUnknownFields()
	for decoder.More() {
		var s seen
		if err := decoder.Decode(&s); err != nil {
			return nil, fmt.Errorf("it printed what is no report: %w", err)
		}
		all = append(all, s)
	}
	return all, nil
}

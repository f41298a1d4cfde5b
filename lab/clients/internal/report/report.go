// Package report is the protocol between a client's program and the runner: one JSON object per line on the
// program's standard output, and the request to restart the server. It is for one goroutine.
package report

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
)

// A program's request to the runner, and the runner's answer.
const (
	RestartRequest = "RESTART"
	RestartDone    = "restarted"
)

// Line is one message of a program: the version of the client, or the result of a check.
type Line struct {
	Version string `json:"version,omitempty"` // of the client

	Check string `json:"check,omitempty"`
	OK    bool   `json:"ok,omitempty"`
	Skip  string `json:"skip,omitempty"`  // why the check does not apply
	Error string `json:"error,omitempty"` // why it failed
}

// Reporter is the program's side of the protocol.
type Reporter struct {
	in     *bufio.Reader
	out    io.Writer
	failed bool
}

// New returns a Reporter that writes to out and reads from in.
func New(in io.Reader, out io.Writer) *Reporter {
	return &Reporter{in: bufio.NewReader(in), out: out}
}

// ModuleVersion returns the version of a Go module in the binary.
func ModuleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path == path {
			return m.Version
		}
	}
	return "unknown"
}

// Version reports the client's version.
func (r *Reporter) Version(version string) { r.say(Line{Version: version}) }

// Check runs a check and reports its result.
func (r *Reporter) Check(name string, check func() error) {
	line := Line{Check: name, OK: true}
	if err := check(); err != nil {
		line.OK, line.Error, r.failed = false, err.Error(), true
	}
	r.say(line)
}

// Skip reports that a check does not apply, and why.
func (r *Reporter) Skip(name, why string) { r.say(Line{Check: name, Skip: why}) }

// Restart returns once the server has been restarted on its ports.
func (r *Reporter) Restart() error {
	if _, err := fmt.Fprintln(r.out, RestartRequest); err != nil {
		return fmt.Errorf("report: request a restart: %w", err)
	}
	answer, err := r.in.ReadString('\n')
	if err != nil {
		return fmt.Errorf("report: wait for the restart: %w", err)
	}
	if answer != RestartDone+"\n" {
		return fmt.Errorf("report: the restart: %q", answer)
	}
	return nil
}

// Err returns an error if a check failed.
func (r *Reporter) Err() error {
	if r.failed {
		return errors.New("a check failed")
	}
	return nil
}

func (r *Reporter) say(line Line) {
	b, err := json.Marshal(line)
	if err == nil {
		_, err = fmt.Fprintf(r.out, "%s\n", b)
	}
	if err != nil { // the runner is gone, and reports the check as missing
		r.failed = true
	}
}

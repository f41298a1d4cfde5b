package failover

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"cellserver/lab/clients/internal/report"
)

// Program is a program that follows Sentinel with a library.
type Program struct {
	Name string
	Dir  string
	Argv []string
}

// callEvery is the time between two calls of a program.
const callEvery = 10 * time.Millisecond

// program is a running Program.
type program struct {
	Program

	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan []byte // of its output; closed at its end
	log   string      // file of its standard error

	round report.Section // so far
	total report.Section // of the key
}

func startProgram(ctx context.Context, p Program, dir, sentinels, call string) (*program, error) {
	r := &program{Program: p, lines: make(chan []byte), log: filepath.Join(dir, p.Name+".log")}
	log, err := os.Create(r.log)
	if err != nil {
		return nil, fmt.Errorf("failover: make the log of %s: %w", p.Name, err)
	}
	defer func() { _ = log.Close() }()
	r.cmd = exec.CommandContext(ctx, p.Argv[0], p.Argv[1:]...)
	r.cmd.Dir, r.cmd.Stderr, r.cmd.WaitDelay = p.Dir, log, time.Second
	r.cmd.Env = append(os.Environ(), "SENTINELS="+sentinels, "NAME="+name, "PASSWORD="+password, "CALL="+call,
		"INTERVAL_MS="+strconv.FormatInt(callEvery.Milliseconds(), 10))
	if r.stdin, err = r.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("failover: %s: %w", p.Name, err)
	}
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("failover: %s: %w", p.Name, err)
	}
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("failover: start %s: %w", p.Name, err)
	}
	go func() {
		defer close(r.lines)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			r.lines <- bytes.Clone(lines.Bytes())
		}
	}()
	return r, nil
}

// begin has it call this key, before anything else.
func (p *program) begin(key string) error {
	_, err := fmt.Fprintln(p.stdin, key)
	return err
}

// section ends its section and returns it; the next one is on this key.
func (p *program) section(ctx context.Context, key string) (report.Section, error) {
	var s report.Section
	if _, err := fmt.Fprintln(p.stdin, key); err != nil {
		return s, p.failed(err)
	}
	select {
	case line, ok := <-p.lines:
		if !ok {
			return s, p.failed(errors.New("it has ended"))
		}
		if err := json.Unmarshal(line, &s); err != nil {
			return s, p.failed(fmt.Errorf("it printed %.200q: %w", line, err))
		}
		return s, nil
	case <-ctx.Done():
		return s, p.failed(context.Cause(ctx))
	}
}

func (p *program) failed(err error) error {
	return fmt.Errorf("failover: %s: %w: %s", p.Name, err, tail(p.log))
}

// stop ends its input, at which it ends.
func (p *program) stop() {
	_ = p.stdin.Close()
	for range p.lines { // until it has closed its output
	}
	_ = p.cmd.Wait()
}

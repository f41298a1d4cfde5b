package failover

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// process is a server that was started here; its directory has its output.
type process struct {
	name string // and of its log, in dir
	dir  string
	argv []string

	cmd   *exec.Cmd
	ended chan struct{} // closed when it has exited
}

// stopTimeout bounds a graceful stop.
const stopTimeout = 20 * time.Second

func (p *process) logFile() string { return filepath.Join(p.dir, p.name+".log") }

func (p *process) start(ctx context.Context) error {
	log, err := os.OpenFile(p.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("failover: open the log of %s: %w", p.name, err)
	}
	defer func() { _ = log.Close() }()
	p.ended = make(chan struct{})
	p.cmd = exec.CommandContext(ctx, p.argv[0], p.argv[1:]...)
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = p.dir, cleanEnviron(), log, log
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("failover: start %s: %w", p.argv[0], err)
	}
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait()
		close(ended)
	}(p.cmd, p.ended)
	return nil
}

// kill ends it as by kill -9.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

func (p *process) stop() {
	if p.cmd == nil || p.cmd.Process == nil {
		return
	}
	_ = p.cmd.Process.Signal(os.Interrupt)
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		p.kill()
	}
}

// exited reports whether it ended by itself or was stopped.
func (p *process) exited() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// tail returns the end of a log.
func tail(file string) string {
	const lines = 12
	b, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// cleanEnviron returns the environment without variables that would configure the server.
func cleanEnviron() (env []string) {
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "CELLSERVER_") {
			env = append(env, variable)
		}
	}
	return env
}

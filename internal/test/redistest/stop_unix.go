//go:build unix

package redistest

import "syscall"

// Stop suspends the server, with its connections open, until Continue.
func (p *Process) Stop() { _ = p.running.Cmd.Process.Signal(syscall.SIGSTOP) }

func (p *Process) Continue() { _ = p.running.Cmd.Process.Signal(syscall.SIGCONT) }

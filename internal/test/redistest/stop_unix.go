//go:build unix

package redistest

import "syscall"

// Stop makes the server stand still, with its connections open, until Continue.
func (p *Process) Stop() { _ = p.cmd.Process.Signal(syscall.SIGSTOP) }

// Continue ends Stop.
func (p *Process) Continue() { _ = p.cmd.Process.Signal(syscall.SIGCONT) }

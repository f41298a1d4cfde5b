//go:build !unix

package redistest

// Stop is not supported on this system.
func (p *Process) Stop() { panic("redistest: no process can be stopped on this system") }

func (p *Process) Continue() {}

//go:build !unix

package redistest

// Stop makes the server stand still, with its connections open, until Continue. It cannot here.
func (p *Process) Stop() { panic("redistest: no process can be stopped on this system") }

// Continue ends Stop.
func (p *Process) Continue() {}

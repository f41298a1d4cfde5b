//go:build !unix

package admin

// infoCPU writes nothing where the system has no getrusage.
func infoCPU(*infoText) {}

//go:build !unix

package command

// infoCPU writes nothing where the system has no getrusage.
func infoCPU(*infoText) {}

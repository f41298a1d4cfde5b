// Package harness starts the program as a process, for the tests that drive it, and talks to it.
package harness

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"cellserver/internal/app"
	"cellserver/internal/app/settings"
	"cellserver/internal/test/processtest"
)

// execEnv makes the test binary act as the program, so that tests can start real processes without building it. It does
// not look like a setting, of which the server would warn.
const execEnv = "TEST_CELLSERVER_EXEC"

// Main is the TestMain of a package whose tests start the program.
func Main(m *testing.M) {
	if os.Getenv(execEnv) == "1" {
		os.Exit(app.Main())
	}
	os.Exit(m.Run())
}

// Command returns a command that runs the program, ends before the test binary does, and does not inherit the
// user's own settings.
func Command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := processtest.Command(t, self, args...)
	cmd.Env = []string{execEnv + "=1"}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, settings.EnvPrefix) {
			cmd.Env = append(cmd.Env, v)
		}
	}
	return cmd
}

// Call runs the program until it exits and returns its output.
func Call(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := Command(t, args...)
	cmd.Env = append(cmd.Env, env...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode(), out.String(), errOut.String()
}

package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"cellserver/internal/test/processtest"
)

// execEnv makes the test binary act as the program, so that tests can start real processes without building it. It does
// not look like a setting, of which the server would warn.
const execEnv = "TEST_CELLSERVER_EXEC"

func TestMain(m *testing.M) {
	if os.Getenv(execEnv) == "1" {
		os.Exit(programMain())
	}
	os.Exit(m.Run())
}

// programCommand returns a command that runs the program, ends before the test binary does, and does not inherit the
// user's own settings.
func programCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := processtest.Command(t, self, args...)
	cmd.Env = []string{execEnv + "=1"}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, envPrefix) {
			cmd.Env = append(cmd.Env, v)
		}
	}
	return cmd
}

// call runs the program until it exits and returns its output.
func call(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := programCommand(t, args...)
	cmd.Env = append(cmd.Env, env...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode(), out.String(), errOut.String()
}

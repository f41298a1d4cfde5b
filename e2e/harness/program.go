// Package harness runs the program as a process and talks to it.
package harness

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"cellserver/internal/app"
	"cellserver/internal/app/settings"
	"cellserver/internal/test/processtest"
)

// execEnv turns the test binary into the program. It must not look like a setting: the server warns of
// unknown ones.
const execEnv = "TEST_CELLSERVER_EXEC"

// Main is the TestMain of a package whose tests start the program.
func Main(m *testing.M) {
	if os.Getenv(execEnv) == "1" {
		os.Exit(app.Main())
	}
	os.Exit(m.Run())
}

// Command returns a command that runs the program without the user's own settings, and ends it with the test
// binary.
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

// progress is a line about work under way, which takes seconds on a busy machine.
var progress = regexp.MustCompile(`(?m)^\d+ (keys?|rows?), \d+ (keys|rows)/s.*\n`)

// Call runs the program until it exits and returns its output, without lines of progress.
func Call(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := Command(t, args...)
	cmd.Env = append(cmd.Env, env...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode(), out.String(), progress.ReplaceAllString(errOut.String(), "")
}

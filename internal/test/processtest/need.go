package processtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// Environment variables that make sets.
const (
	verifyEnv  = "TEST_VERIFY"  // not empty: nothing may be skipped
	skippedEnv = "TEST_SKIPPED" // the file that gets a line for each test that is skipped
)

// Need finds programs, and returns the path of the first. Without one of them it skips the test, as
// SkipWithout does.
func Need(t testing.TB, programs ...string) (path string) {
	t.Helper()
	for i, program := range programs {
		found, err := exec.LookPath(program)
		if err != nil {
			SkipWithout(t, program)
		}
		if i == 0 {
			path = found
		}
	}
	return path
}

// SkipWithout skips a test for want of something, which make test lists at the end. With TEST_VERIFY it fails
// the test.
func SkipWithout(t testing.TB, what string) {
	t.Helper()
	if os.Getenv(verifyEnv) != "" {
		t.Fatalf("requires %s: run scripts/deps.sh", what)
	}
	if err := note(os.Getenv(skippedEnv), what); err != nil {
		t.Fatal(err)
	}
	t.Skipf("requires %s: scripts/deps.sh installs what tests require", what)
}

// note appends a line by one write, as others do at the same time.
func note(file, what string) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, what)
	return errors.Join(err, f.Close())
}

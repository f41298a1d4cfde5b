package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cellserver/internal/app/cli"
	"cellserver/internal/app/usage"
	"cellserver/internal/test/processtest"
)

// TestManual requires a page for each listed command, with all its flags, and no fault found by mandoc.
func TestManual(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1795392000")
	dir := t.TempDir()
	if err := writePages(dir); err != nil {
		t.Fatal(err)
	}
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		for _, below := range cmd.Commands() {
			if below.IsAvailableCommand() {
				check(below)
			}
		}
		file := filepath.Join(dir, pageName(cmd)+".1")
		if out, err := processtest.Command(t, processtest.Need(t, "mandoc"), "-Tlint", "-Wwarning", file).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%v, %s", err, out)
		}
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(page), `\-`, "-")
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(text, "--"+f.Name) {
				t.Errorf("%s has no --%s", file, f.Name)
			}
		})
		if has := strings.Contains(text, ".SH EXIT STATUS\n.TP\n.B 0\n"); has != (len(usage.ExitsOf(cmd)) > 0) {
			t.Errorf("%s has exit codes: %t", file, has)
		}
		if !strings.Contains(text, `"2026-11-23"`) {
			t.Errorf("%s lacks the day of SOURCE_DATE_EPOCH", file)
		}
	}
	root, _ := cli.Root(cli.Program{})
	check(root)
}

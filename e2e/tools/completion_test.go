package tools

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/app"
	"cellserver/internal/test/processtest"
)

// bashCompletes completes as bash does at Tab, with the two functions that the script needs from
// bash-completion.
const bashCompletes = `source "$1"
_get_comp_words_by_ref() { words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=${words[cword]}; prev=${words[cword-1]}; }
__ltrim_colon_completions() { :; }
COMP_WORDS=(cellserver --log-level ""); COMP_CWORD=2; COMP_LINE="cellserver --log-level "; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9
__start_cellserver
echo ${COMPREPLY[@]}`

// TestCompletionScripts: each shell accepts its script and completes by it.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := harness.Command(t)
	if err := os.Symlink(program.Path, filepath.Join(dir, "cellserver")); err != nil {
		t.Fatal(err)
	}
	for shell, args := range map[string][]string{
		"bash": {"-c", bashCompletes, "bash"}, "zsh": {"-n"}, "fish": {"--no-config", "-c", `source $argv[1]; complete -C "cellserver --log-level "`},
	} {
		var script bytes.Buffer
		if err := app.Run(t.Context(), []string{"completion", shell}, nil, &script, io.Discard); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, shell)
		if err := os.WriteFile(file, script.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := processtest.Command(t, processtest.Need(t, shell), append(args, file)...)
		cmd.Env = slices.Concat(program.Env, []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "HOME=" + dir})
		out, err := cmd.Output()
		words := strings.Fields(string(out))
		slices.Sort(words)
		// zsh completes on a terminal only
		if want := "debug error info warn"; err != nil || strings.Join(words, " ") != want && shell != "zsh" {
			t.Errorf("%s: %v, %s", shell, err, out)
		}
	}
}

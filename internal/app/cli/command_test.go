package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cellserver/internal/app/settings"
	"cellserver/internal/app/usage"
)

// everyCommand visits cmd and all its descendants.
func everyCommand(cmd *cobra.Command, visit func(cmd *cobra.Command)) {
	visit(cmd)
	for _, below := range cmd.Commands() {
		everyCommand(below, visit)
	}
}

// goWords are words of Go's errors that must not reach users.
var goWords = regexp.MustCompile(`strconv|ParseInt|ParseBool|ParseUint|Atoi|invalid syntax|invalid argument|flag:|time:|parsing|missing unit|unmarshal|%!|&\{|0x[0-9a-f]{8}`)

// TestEveryFlagsBadValues requires one line with the flag, the value and what the flag takes.
func TestEveryFlagsBadValues(t *testing.T) {
	t.Parallel()
	root, _ := newRoot(Program{})
	refused := map[string]int{}
	everyCommand(root, func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			for _, bad := range []string{"zz:zz", "-5x", "1.5.5", "99999999999999999999", "\x01", "NaN", "1e99", " 5", "0x10", "-1s", "9999999h"} {
				err := cmd.ParseFlags([]string{"--" + f.Name + "=" + bad})
				if err == nil {
					continue
				}
				got := strconv.Quote(bad)
				if f.Name == "envoy-xds-headers" { // may have a token
					got = `"..."`
				}
				text := cmd.FlagErrorFunc()(cmd, err).Error()
				if goWords.MatchString(text) || strings.Contains(text, "\n") || !strings.HasPrefix(text, "--"+f.Name+" takes ") || !strings.Contains(text, "; got "+got) {
					t.Errorf("%s --%s=%q: %s", cmd.CommandPath(), f.Name, bad, text)
				}
				refused[f.Name]++
			}
		})
	})
	// Flags that take any text and are checked on use.
	anything := regexp.MustCompile(`file|store$|-(cert|key|ca|dir|user|prefix|server-name)$|^(unixsocket|envoy-config|envoy-xds-node-id|envoy-xds-tls-name|requirepass|config|from|into|match|resume|key|filter|time-field|user)$`)
	everyCommand(root, func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if refused[f.Name] == 0 && !anything.MatchString(f.Name) {
				t.Errorf("%s --%s has refused none of the bad values", cmd.CommandPath(), f.Name)
			}
		})
	})
}

func TestFlagMistakes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args string
		want string
	}{
		{"--max-clients 5", "unknown flag --max-clients; did you mean --maxclients?"},
		{"dump --form csv", "unknown flag --form; did you mean --from?"},
		{"-x", "unknown flag -x; see cellserver --help"},
		{"--port 7000", "unknown flag --port; use --addr"},
		{"health --addr :6380", "unknown flag --addr; use --metrics-addr"},
		{"health --port 6380", "unknown flag --port; use --metrics-addr"},
		{"-p 7000", "unknown flag -p; use --addr"},
		{"--BIND=0.0.0.0", "unknown flag --BIND; use --addr"},
		{"--appendonly yes", "unknown flag --appendonly; use --data-dir"},
		{"-addr=:7000", "unknown flag -addr; did you mean --addr?"},
		{"dump --port 7000", "unknown flag --port; use --from"},
		{"dump --addr :7000", "unknown flag --addr; use --from"},
		{"load --addr :7000", "unknown flag --addr; use --into"},
		{"dump -a s3cret", "unknown flag -a; use --password-file"},
		{"dump -as3cret", "unknown flag -a; use --password-file"},
		{"dump -ésecret", "unknown flag -é; see cellserver dump --help"},
		{"top --pass s3cret", "unknown flag --pass; use --password-file"},
		{"top redis://u:s3cret@b", `top takes no argument, got "...@b"`},
		{"top --addr u:s3cret@b:1", `--addr takes host:port, such as 127.0.0.1:6380, or a URL, such as rediss://user@host:port; got "...@b:1"`},
		{"redis://u:s3cret@b", `unknown command "...@b"; a config file is named by --config`},
		{"dump redis://u:s3cret@b", "dump: FILE is a URL; name the server by --from"},
		{"limits diff redis://u:s3cret@b", "limits diff: FILE is a URL; name the server by --addr"},
		{"check redis://u:s3cret@b", "check: DIR is a URL; give the data directory of a stopped server"},
		{"dump --from u:s3cret@b:1", "--from: want the URL of a server, such as redis://user@host:port, or the path of a data directory"},
		{"dump --from redis://s3cret@b", "--from: a user requires a password; give it by --password-file or REDISCLI_AUTH"},
		{"load --into data --password-file x", "--password-file requires the URL of a server; --into names a data directory"},
		{"import --into u:s3cret@b:1 redis://c:1", "--into: want a URL such as redis://user@host:port, rediss:// for TLS, or unix:///path"},
		{"import --into redis://s3cret@b redis://c", "--into: a user requires a password; give it by --into-password-file"},
		{"/etc/redis.conf", `unknown command "/etc/redis.conf"; a config file is named by --config`},
		{"config check now", `config check takes no argument, got "now"`},
		{"--log-level " + strings.Repeat("a", 100), `--log-level takes debug, info, warn or error; got "` + strings.Repeat("a", 64) + `..."`},
		{"--addr", "--addr requires a value; see cellserver --help"},
		{"--log-level wran", `--log-level takes debug, info, warn or error; got "wran"; did you mean warn?`},
		{"--lua maybe", `--lua takes on or off; got "maybe"`},
		{"--pprof=maybe", `--pprof takes true or false; got "maybe"`},
		{"config chek", `unknown command "chek"; did you mean check?`},
		{"config", "config requires a command: check, show or example; see cellserver config --help"},
		{"help config sho", `unknown command "sho"; did you mean show?`},
		{"completion", "completion: want one SHELL: bash, zsh, fish or powershell; see cellserver completion --help"},
		{"completion tcsh", `completion: want bash, zsh, fish or powershell, got "tcsh"`},
		{"version now", `version takes no argument, got "now"`},
		{"check", "check: want one DIR; see cellserver check --help"},
		{"limits", "limits requires a command: check, convert, diff, import or key; see cellserver limits --help"},
		{"limits chek", `unknown command "chek"; did you mean check?`},
		{"limits check", "limits check: want one FILE; see cellserver limits check --help"},
		{"limits convert a b", "limits convert: want one FILE; see cellserver limits convert --help"},
		{"limits import", "limits import: want at least one FILE; see cellserver limits import --help"},
		{"limits key", "limits key: want 1 to 8 PARTs, got 0; see cellserver limits key --help"},
		{"limits key a b c d e f g h i", "limits key: want 1 to 8 PARTs, got 9; see cellserver limits key --help"},
		{"limits diff a --addr b", `--addr takes host:port, such as 127.0.0.1:6380, or a URL, such as rediss://user@host:port; got "b"`},
		{"limits diff a --addr http://:secret@b", "--addr: want a URL such as redis://user@host:port, rediss:// for TLS, or unix:///path"},
	} {
		err := Run(t.Context(), Program{}, strings.Fields(tt.args), nil, io.Discard, io.Discard)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: got %v, want %s", tt.args, err, tt.want)
		}
	}
}

// TestHelpFitsItsTerminal also compares help COMMAND with COMMAND --help.
func TestHelpFitsItsTerminal(t *testing.T) {
	t.Parallel()
	root, help := newRoot(Program{})
	everyCommand(root, func(cmd *cobra.Command) {
		widths := []int{79, 119}
		if !strings.Contains(About(cmd), "\n  ") { // a table is not wrapped, and fits 79
			widths = append(widths, 39)
		}
		for _, width := range widths {
			text := help.text(cmd, width)
			if cmd.Example != "" {
				text, _, _ = strings.Cut(text, "\nExample")
			}
			for line := range strings.Lines(text) {
				// Neither a word is split, nor a flag or a command from its value.
				words := strings.TrimSpace(line)
				if len(line)-1 > width && strings.Contains(words, " ") && (width > 39 || !strings.HasPrefix(words, "-") && !strings.HasPrefix(words, "cellserver ")) {
					t.Errorf("%s at %d: %s", cmd.CommandPath(), width, line)
				}
			}
		}
		var byFlag, byCommand bytes.Buffer
		path := strings.Fields(cmd.CommandPath())[1:]
		if err := Run(t.Context(), Program{}, append(slices.Clone(path), "--help"), nil, &byFlag, io.Discard); err != nil {
			t.Error(err)
		}
		if err := Run(t.Context(), Program{}, append([]string{"help"}, path...), nil, &byCommand, io.Discard); err != nil {
			t.Error(err)
		}
		if byFlag.String() != byCommand.String() || !strings.Contains(byFlag.String(), "\nUsage:\n  "+strings.TrimSuffix(cmd.CommandPath(), " help")) {
			t.Errorf("%s: --help says %q, help %q", cmd.CommandPath(), byFlag.String(), byCommand.String())
		}
	})
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ args, want string }{
		{"", "check completion config dump health help import limits load ratelimit replay shadow top version"},
		{"config ", "check example show"},
		{"limits ", "check convert diff import key"},
		{"help config ", "check example show"},
		{"completion ", "bash zsh fish powershell"},
		{"--maxmemory-policy ", "volatile-ttl noeviction"},
		{"--lua ", "on off"},
		{"dump --format ", "stream csv"},
		{"config check --log-level ", "debug info warn error"},
		{"top -", "--addr --password-file --interval --rounds -n --limited --help -h"},
		{"--maxclients", "--maxclients --maxclients-per-address"},
	} {
		words := strings.Split(tt.args, " ")
		var out bytes.Buffer
		if err := Run(t.Context(), Program{}, append([]string{"__complete"}, words...), nil, &out, io.Discard); err != nil {
			t.Errorf("%q: %v", tt.args, err)
		}
		var got []string
		for line := range strings.Lines(out.String()) {
			word, description, _ := strings.Cut(strings.TrimSpace(line), "\t")
			if strings.Contains(description, "`") {
				t.Errorf("%q: a description with its quotes: %s", tt.args, line)
			}
			if !strings.HasPrefix(word, ":") {
				got = append(got, word)
			}
		}
		if !strings.HasPrefix(strings.Join(got, " "), tt.want) {
			t.Errorf("%q completes to %q, want %s", tt.args, got, tt.want)
		}
	}
}

// TestHelpHasExitCodes of every command that takes work from a script.
func TestHelpHasExitCodes(t *testing.T) {
	t.Parallel()
	root, help := newRoot(Program{})
	without := []string{"completion", "config", "example", "help", "limits", "show", "version"}
	everyCommand(root, func(cmd *cobra.Command) {
		_, table, has := strings.Cut(help.text(cmd, plainHelpWidth), "\nExit codes:\n")
		if has == slices.Contains(without, cmd.Name()) {
			t.Errorf("%s: has exit codes: %t", cmd.CommandPath(), has)
		}
		if codes := regexp.MustCompile(`(?m)^  [012]  \w`).FindAllString(table, -1); has && len(codes) != 3 {
			t.Errorf("%s: %s", cmd.CommandPath(), table)
		}
	})
	for code, err := range []error{nil, errors.New("failed"), fmt.Errorf("top: %w", usage.Errorf("mistaken"))} {
		if got := usage.ExitCode(err); got != code {
			t.Errorf("%v: %d, want %d", err, got, code)
		}
	}
}

func TestHelpHasEveryFlag(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := Run(t.Context(), Program{}, []string{"--help"}, nil, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, g := range (&settings.Options{}).FlagGroups() {
		var flags strings.Builder
		printFlags(&flags, g.Flags, plainHelpWidth)
		if !strings.Contains(out.String(), "\n"+g.Title+":\n"+flags.String()) {
			t.Errorf("--help has no heading %s with its flags", g.Title)
		}
	}
}

package commandstest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/funnel"
	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/redis/commands"
	"cellserver/internal/wire/peer"
)

// PlayTranscripts plays the files in testdata/transcripts of the package under test. Each begins with its
// settings and is one session of a new engine. Its lines:
//
//	# a comment
//	! password=secret, capacity, data-dir, envoy=files, or envoy=xds
//	@ 1500ms                    the clock goes on
//	> CL.THROTTLE a 4 1 10      an inline command, and
//	< *5                        its reply, line by line, escaped as in Go
//	= close                     the status afterwards, if not NeedInput
//
// UPDATE_TRANSCRIPTS=1 writes the replies anew; review them before they are committed.
func PlayTranscripts(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("testdata/transcripts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var played string
			synctest.Test(t, func(t *testing.T) { played = play(t, string(text)) }) // ages and TIME stand still
			if os.Getenv("UPDATE_TRANSCRIPTS") != "" {
				if err := os.WriteFile(file, []byte(played), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			compareTranscripts(t, string(text), played)
		})
	}
}

// play returns a transcript with its actual replies.
func play(t *testing.T, text string) string {
	var (
		settings []func(*commands.Config)
		r        *Harness
		s        *Client
		played   strings.Builder
	)
	for line := range strings.Lines(text) {
		mark, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if mark == "<" || mark == "=" {
			continue
		}
		played.WriteString(line)
		if mark == "!" {
			settings = append(settings, setting(t, rest))
			continue
		}
		if s == nil && (mark == "@" || mark == ">") {
			r = New(settings...)
			s = r.Session()
		}
		switch mark {
		case "@":
			d, err := time.ParseDuration(rest)
			if err != nil {
				t.Fatal(err)
			}
			r.Clock.Advance(int64(d))
		case ">":
			replies, _, status := Converse(t, s, rest+"\r\n")
			played.WriteString(replyLines(replies))
			if status != peer.NeedInput {
				played.WriteString("= " + []string{"", "more", "waiting", "close", "abort"}[status] + "\n")
			}
		}
	}
	return played.String()
}

func setting(t *testing.T, text string) func(*commands.Config) {
	password, ok := strings.CutPrefix(text, "password=")
	switch {
	case ok:
		return WithPassword(password)
	case text == "capacity":
		return WithReading(funnel.Capacity)
	case text == "envoy=files":
		return WithEnvoy(t, envoyconfig.Files)
	case text == "envoy=xds":
		return WithEnvoy(t, envoyconfig.XDS)
	case text == "data-dir":
		return Keeping(t, disktest.New(), time.Second)
	}
	t.Fatalf("unknown setting %q", text)
	return nil
}

func replyLines(replies string) string {
	var b strings.Builder
	for replies != "" {
		line, rest, whole := strings.Cut(replies, "\r\n")
		if !whole {
			line, rest = line+"(no CRLF)", ""
		}
		quoted := strconv.Quote(line)
		line = strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
		if text, ok := strings.CutSuffix(line, " "); ok {
			line = text + `\x20` // editors cut trailing blanks
		}
		b.WriteString(strings.TrimSuffix("< "+line, " ") + "\n")
		replies = rest
	}
	return b.String()
}

// compareTranscripts reports each command whose replies differ.
func compareTranscripts(t *testing.T, want, got string) {
	t.Helper()
	wanted, played := strings.Split(want, "\n> "), strings.Split(got, "\n> ")
	if len(wanted) != len(played) {
		t.Fatalf("played %d commands of %d", len(played), len(wanted))
	}
	for i := range wanted {
		command, _, _ := strings.Cut(wanted[i], "\n")
		if wanted[i] != played[i] {
			t.Errorf("%s\ngot:\n%s\nwant:\n%s", command, played[i], wanted[i])
		}
	}
}

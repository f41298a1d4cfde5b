package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	t.Setenv("CI", "true")
	s, err := parse([]string{"--only", "go,ruby"}, io.Discard)
	if err != nil || !s.check || !s.print || !slices.Equal(s.only, []string{"go", "ruby"}) {
		t.Errorf("%+v, %v", s, err)
	}
	for args, want := range map[string]string{"x": "unexpected argument x", "--nonsense": "unknown flag"} {
		if _, err := parse([]string{args}, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
	if _, err := selected([]string{"cobol"}); err == nil {
		t.Error("a program that there is not is selected")
	}
}

func TestVerdict(t *testing.T) {
	flask := seen{Library: "Flask-Limiter", Part: "moving-window", Saw: []string{"200", "429"}}
	with := func(s seen, err string, saw ...string) seen { s.Error, s.Saw = err, saw; return s }
	const text = "ResponseError: cellserver keeps limits, not lists: CL.X key counts; see docs. More script: 1."
	other := seen{Library: "Flask-Limiter", Part: "fixed-window", Saw: []string{"200"}}
	for _, test := range []struct {
		control, tested seen
		want            string
	}{
		{flask, flask, "yes"},
		{flask, with(flask, text), "refused: CL.X key counts"},
		{flask, with(flask, "ERR no KEYS here script: 1"), "refused: no KEYS here"},
		{flask, with(flask, "", "200", "500"), `NO: step 2 saw "500"; redis-server: "429"`},
		{flask, with(flask, "", "200"), `NO: step 2 saw "nothing"; redis-server: "429"`},
		{other, with(other, "ERR oh no"), `NO: "ERR oh no"; redis-server: ""`},
	} {
		if got := verdict(test.control, test.tested); got != test.want {
			t.Errorf("%v, %v: %q, want %q", test.control, test.tested, got, test.want)
		}
	}
}

func TestSurprises(t *testing.T) {
	flask := seen{Library: "Flask-Limiter", Part: "moving-window", Saw: []string{"200"}}
	failed := flask
	failed.Error = "ERR no"
	fixed := seen{Library: "Flask-Limiter", Part: "fixed-window", Saw: []string{"200"}}
	for _, test := range []struct {
		control, tested []seen
		want            string
	}{
		{[]seen{fixed}, []seen{fixed}, ""},
		{[]seen{flask}, []seen{failed}, ""},
		{[]seen{flask}, []seen{flask}, "it runs, the matrix says"},
		{[]seen{failed}, []seen{flask}, "on redis-server: ERR no"},
		{[]seen{fixed}, []seen{{Library: "Flask-Limiter", Part: "fixed-window"}}, "NO"},
		{[]seen{fixed, flask}, []seen{fixed}, "1 parts, on redis-server 2"},
		{[]seen{{Library: "none"}}, []seen{{Library: "none"}}, "not in the matrix"},
	} {
		got := strings.Join(surprises(result{control: test.control, tested: test.tested, strict: test.tested}), "\n")
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%v, %v: %q, want %q", test.control, test.tested, got, test.want)
		}
	}
}

func TestStreams(t *testing.T) {
	streams, err := parseStreams("# c\nlibrary L, 1.x\nscript s\nreturn 1\nend\nend script\n\npart p\n" +
		"~ 2x EVAL {s} 1 {k}\npause 5ms\nSET a 1\n")
	if err != nil || len(streams) != 1 || len(streams[0].steps) != 3 {
		t.Fatalf("%+v, %v", streams, err)
	}
	s := streams[0]
	if s.library != "L" || s.version != "1.x" || s.part != "p" || s.scripts["s"] != "return 1\nend\n" {
		t.Errorf("%+v", s)
	}
	if st := s.steps[0]; !st.about || st.times != 2 || !slices.Equal(st.words, []string{"EVAL", "{s}", "1", "{k}"}) {
		t.Errorf("%+v", st)
	}
	if s.steps[1].pause != 5*time.Millisecond {
		t.Errorf("%+v", s.steps[1])
	}
	if _, err := parseStreams("GET a"); err == nil {
		t.Error("a command without a part")
	}
	if _, err := parseStreams("script s\nreturn 1"); err == nil {
		t.Error("a script without an end")
	}
	now := time.Unix(100, 0)
	for word, want := range map[string]string{
		"{now}": "100", "{now+60}": "160", "{now-ms}": "100000", "{now-ms-1}": "99999", "{k}": "{k}",
		`""`: "", `"\x01"`: "\x01", "{s}": "return 1\nend\n", "{sha:s}": "ff2f7c705afcd94889b4de34ec97b000a27ff284",
	} {
		if got := s.expand(word, now); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}

func TestRender(t *testing.T) {
	for _, test := range []struct {
		reply any
		about bool
		want  string
	}{
		{[]any{int64(1), "a\n", nil}, false, `[1 "a\n" nil]`},
		{[]any{int64(3), int64(59), int64(59_990), int64(-2)}, true, "[3 60 60000 -2]"},
		{int64(59), false, "59"},
	} {
		if got := render(test.reply, test.about); got != test.want {
			t.Errorf("%v: %s, want %s", test.reply, got, test.want)
		}
	}
}

func TestPage(t *testing.T) {
	rows := []row{
		{library: "throttled", version: "1.0", part: "middleware", cell: "yes"},
		{library: "throttled", version: "1.0", part: gone, cell: "500"},
	}
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte(pageOf(rows)), 0o600); err != nil {
		t.Fatal(err)
	}
	rows[0].version = "2.0"
	if err := compare(file, pageOf(rows)); err != nil {
		t.Errorf("another version: %v", err)
	}
	rows[0].cell = "no"
	if err := compare(file, pageOf(rows)); err == nil || !strings.Contains(err.Error(), "out of date") {
		t.Errorf("another result: %v", err)
	}
	if err := compare(file+".none", ""); err == nil {
		t.Error("no page")
	}
}

// The streams of the repository are whole: what they name is in the matrix, and each script is used.
func TestTheStreams(t *testing.T) {
	files, err := filepath.Glob("streams/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		streams, err := parseStreams(string(text))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, s := range streams {
			lib, ok := libraryNamed(s.library)
			if !ok || lib.fails == "" || s.version == "" {
				t.Errorf("%s: %q is not in the matrix", file, s.library)
			}
			for name := range s.scripts {
				if !strings.Contains(string(text), "{"+name+"}") {
					t.Errorf("%s: script %s is not used", file, name)
				}
			}
		}
	}
	_, err = replayAll(context.Background(), t.TempDir(), "", "redis://127.0.0.1:1/0", time.Now())
	if err == nil {
		t.Error("an empty directory is replayed")
	}
}

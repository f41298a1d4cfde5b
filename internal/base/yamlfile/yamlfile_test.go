package yamlfile

import (
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// read returns the fields of a text.
func read(text string) (fields []string, err error) {
	f := &File{Path: "f"}
	if root := f.Root([]byte(text)); root != nil {
		f.Fields(root, "the file", func(key, value *yaml.Node) { fields = append(fields, key.Value+"="+value.Value) })
	}
	return fields, f.Err()
}

func TestFields(t *testing.T) {
	for _, tt := range []struct{ text, fields, err string }{
		{"", "", ""},
		{"# only this\n", "", ""},
		{"a: 1\nb: on\n", "a=1 b=on", ""},
		{"a: &x 5\nb: *x\n", "a=5 b=5", ""},
		{"a: 1\nb: 2\na: 3\n", "a=1 b=2", `f:3: "a" is in line 1 already`},
		{"a: 1\n---\n", "a=1", ""},
		{"a: 1\n---\n# nothing\n---\n~\n...\n", "a=1", ""},
		{"a: 1\n---\n---\nb: 1\n", "", "f:3: more than one document; remove this '---' and all below"},
		{"x: &x {a: 1, b: 2}\n<<: *x\nb: 3\n", "x= b=3 a=1", ""},
		{"x: &x {a: 1}\ny: &y {a: 2, b: 2, <<: *x}\n<<: [*x, *y]\n", "x= y= a=1 b=2", ""},
		{"<<: {a: 1, a: 2}\n", "a=1", `f:1: "a" is in line 1 already`},
		{"a: 1\n<<: 5\n", "a=1", "f:2: a merged mapping must be a mapping"},
		{"'<<': 5\n", "<<=5", ""},
		{"x: &x {<<: *x, a: 1}\n<<: *x\n", "x= a=1", "f:1: too many merged mappings, or deeper than 32 levels; write out some"},
		{"- a\n", "", "f:1: the file must be a mapping"},
		{"? [a]\n: 1\nb: 2\n", "b=2", "f:1: a key must be a word"},
		{"a: 1\n---\nb: 2\n", "", "f:2: more than one document; remove this '---' and all below"},
		{"a: 1\n---\nb: [\n", "", "f:4: not YAML: did not find expected node content"},
		{"---\n# nothing\n", "", ""},
		{"~\n", "", ""},
		{"\ufeffa: 1\r\nb:\t2\r\n", "a=1 b=2", ""},
		// A file must not count as empty where the parser stops: its password would be ignored.
		{"a: 1\n# caf\xe9\n", "", "f:2: not text in UTF-8"},
		{"a: 1\nb: 2\x00\n", "", `f:2: has the control character '\x00'`},
		{"a: 1\nb: \uffff\n", "", `f:2: has the control character '\uffff'`},
		{"\xff\xfea\x00:\x00 \x001\x00", "", "f:1: not text in UTF-8"},
		// A wrong name may be another file's, and an error is logged: it has no line of it, and no secret.
		{"root x: 1\nroot x: 2\n", "root x=1", `f:2: "root..." is in line 1 already`},
		{"a: *" + strings.Repeat("secret", 20) + "\n", "", `f:1: not YAML: unknown anchor "secretsecretsecretsecretsecretse..."`},
		{"a: {b\n", "", "f:2: not YAML: did not find expected ',' or '}'"},
	} {
		fields, err := read(tt.text)
		if strings.Join(fields, " ") != tt.fields || (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("%q: got %q, %v", tt.text, fields, err)
		}
	}
}

func TestItems(t *testing.T) {
	for _, tt := range []struct{ text, items, err string }{
		{"[]\n", "", ""},
		{"- a\n- &b 2\n- *b\n", "a 2 2", ""},
		{"# none\na: 1\n", "", "f:2: it must be a list"},
		{"[" + strings.Repeat("bad, ", 2000) + "]\n", strings.TrimSpace(strings.Repeat("bad ", 1000)), "f:1: bad"},
	} {
		f := &File{Path: "f"}
		var items []string
		f.Items(f.Root([]byte(tt.text)), "it", func(item *yaml.Node) {
			if items = append(items, item.Value); item.Value == "bad" {
				f.Fail(item, "bad")
			}
		})
		err := f.Err()
		if strings.Join(items, " ") != tt.items || (err == nil) != (tt.err == "") || err != nil && !strings.HasPrefix(err.Error(), tt.err) {
			t.Errorf("%.50q: got %d items, %v", tt.text, len(items), err)
		}
	}
}

func TestManyProblemsAreCounted(t *testing.T) {
	_, err := read("a: 1\n" + strings.Repeat("a: 1\n", 32))
	if err == nil || strings.Count(err.Error(), "; ") != 20 || !strings.HasSuffix(err.Error(), "; and 12 more") {
		t.Error(err)
	}
	_, err = read("a: 1\n" + strings.Repeat("a: 1\n", 2000))
	if err == nil || !strings.HasSuffix(err.Error(), "; and many more errors") {
		t.Error(err)
	}
}

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if _, err := Read(path); err == nil || err.Error() != "cannot read "+path+": no such file or directory" {
		t.Error(err)
	}
}

func TestWord(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "word": "word", "two words": "two...", "a\nb": "a...", " a b": "a...", strings.Repeat("x", 32): strings.Repeat("x", 32),
		strings.Repeat("x", 33): strings.Repeat("x", 32) + "...", "root:$6$salt$0123456789abcdef0123456789:1": "root:$6$salt$0123456789abcdef012...",
	} {
		if got := Word(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

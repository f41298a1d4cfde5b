package check

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// shownPasswords match a password where a machine's list of processes would show it.
func shownPasswords() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`[a-z]://[^\s/@\[]*:[^\s/@]+@`),                                                               // in a URL
		regexp.MustCompile(`(?:redis|valkey)-cli\b[^\n]* (?:-a|--pass)[ =]\S`),                                           // its flags
		regexp.MustCompile(`(?:redis|valkey)-cli\b[^\n]* (?i:auth|config set requirepass|acl setuser \S+[^\n]* >)\s*\S`), // its arguments
		regexp.MustCompile(`(?:cell|redis-|valkey-)server\b[^\n]* --(?:requirepass|masterauth)[ =][^\s{]`),
		regexp.MustCompile(`(?:docker|podman|kubectl|helm)\b[^\n]* (?:-e|--env|--set)[ =]\S*(?i:pass|password|auth)=\S`),
		regexp.MustCompile(`curl\b[^\n]* (?:-u|--user)[ =]\S*:\S`),
	}
}

// TestNoPasswordOnCommandLines: no document, ready file or help shows a password as an argument.
func TestNoPasswordOnCommandLines(t *testing.T) {
	texts := map[string]string{}
	for _, command := range []string{"", "dump", "import", "load", "limits diff", "shadow", "top"} {
		texts["cellserver "+command+" --help"] = run(t, "", build(t), append(strings.Fields(command), "--help")...)
	}
	documents := []string{".md", ".html", ".yaml", ".yml", ".sh", ".conf", ".cfg", ".txt", ".tpl", ".env", ".service"}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "node_modules", "testdata", "dist"}, d.Name()):
			return fs.SkipDir
		case d.Type().IsRegular() && (slices.Contains(documents, filepath.Ext(path)) || slices.Contains([]string{"Dockerfile", "Makefile"}, d.Name())):
			text, err := os.ReadFile(path)
			texts[path] = string(text)
			return err
		}
		return nil
	})
	if err != nil || len(texts) < 50 {
		t.Fatalf("%d texts, %v", len(texts), err)
	}
	variable := "| `REDIS_URL` | `redis://:password@127.0.0.1:port/0`;" // of test programs
	for name, text := range texts {
		text = strings.ReplaceAll(strings.ReplaceAll(text, variable, ""), "\\\n", " ")
		for _, shown := range shownPasswords() {
			for _, found := range shown.FindAllString(text, -1) {
				t.Errorf("%s shows a password: %s", name, found)
			}
		}
	}
}

// TestShownPasswords: the patterns match what they are for.
func TestShownPasswords(t *testing.T) {
	for line, want := range map[string]bool{
		"cellserver dump --from redis://operator:PASSWORD@limits.example:6380": true,
		"redis-cli -u redis://:s3cret@127.0.0.1 ping":                          true,
		"redis-cli -p 6380 -a s3cret ping":                                     true,
		"redis-cli --pass s3cret":                                              true,
		"redis-cli AUTH s3cret":                                                true,
		"redis-cli acl setuser app on >s3cret":                                 true,
		"redis-cli acl setuser app on ' >s3cret'":                              true,
		"redis-cli config set requirepass s3cret":                              true,
		"./cellserver --addr :6380 --requirepass s3cret":                       true,
		"redis-server --port 6379 --requirepass=s3cret":                        true,
		"docker run -e CELLSERVER_REQUIREPASS=s3cret cellserver":               true,
		"kubectl run try --env=REDISCLI_AUTH=\"$(cat password)\" --":           true,
		"curl -u user:s3cret http://127.0.0.1:9380/":                           true,
		"cellserver dump --from redis://operator@limits.example:6380":          false,
		"REDISCLI_AUTH=$(cat password) redis-cli -p 6380 ping":                 false,
		"redis-cli --user app --askpass ping":                                  false,
		"./cellserver --requirepass-file password":                             false,
		"docker run -e CELLSERVER_REQUIREPASS cellserver":                      false,
		"docker run -e CELLSERVER_REQUIREPASS_FILE=/run/secrets/requirepass":   false,
		"redis-server --requirepass {password}":                                false,
		"cellserver://[user:password@]host:port":                               false,
	} {
		got := slices.ContainsFunc(shownPasswords(), func(shown *regexp.Regexp) bool { return shown.MatchString(line) })
		if got != want {
			t.Errorf("%s: got %t", line, got)
		}
	}
}

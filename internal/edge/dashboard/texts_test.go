package dashboard

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/limiter"
	"cellserver/internal/wire/catalog"
)

// TestLanguagesAreComplete checks that each text exists in each language with the same fmt verbs, and is
// used.
func TestLanguagesAreComplete(t *testing.T) {
	verbs := regexp.MustCompile(`%[sd]`)
	en, zh := reflect.ValueOf(*words.English()), reflect.ValueOf(*words.Chinese())
	used := source(t)
	for _, field := range reflect.VisibleFields(en.Type()) {
		name, a, b := field.Name, en.FieldByIndex(field.Index).String(), zh.FieldByIndex(field.Index).String()
		if strings.TrimSpace(a) == "" || strings.TrimSpace(b) == "" {
			t.Errorf("%s is missing: %q, %q", name, a, b)
		}
		if !slices.Equal(verbs.FindAllString(a, -1), verbs.FindAllString(b, -1)) {
			t.Errorf("%s has other fmt verbs: %q, %q", name, a, b)
		}
		if !regexp.MustCompile(`(?:t|T)\.` + name + `\b`).MatchString(used) {
			t.Errorf("%s is not used", name)
		}
	}
}

// TestCommandsExist checks that each command named on the page is in the catalog.
func TestCommandsExist(t *testing.T) {
	table := catalog.New()
	named := regexp.MustCompile(`CL\.[A-Z]+(?: [A-Z]{2,})?`)
	check := func(where, text string) {
		for _, call := range named.FindAllString(text, -1) {
			words := strings.Fields(strings.ToLower(call))
			c := table.Lookup([]byte(words[0]))
			isContainer := call == "CL.CONCURRENCY" || call == "CL.LIMIT"
			if c == nil || c.Subs != nil && (len(words) == 1 || c.Sub([]byte(words[1])) == nil) && !isContainer {
				t.Errorf("%s names %s, which is no command", where, call)
			}
		}
	}
	for _, language := range []*words.Texts{words.English(), words.Chinese()} {
		all := reflect.ValueOf(*language)
		for _, field := range reflect.VisibleFields(all.Type()) {
			check(language.Lang+" "+field.Name, all.FieldByIndex(field.Index).String())
		}
	}
	for kind := range limiter.Kinds {
		check("the table", command(kind))
	}
	check("the script", script())
	for _, field := range []string{words.English().KindsNote, words.Chinese().KindsNote} {
		if !named.MatchString(field) {
			t.Errorf("no command is found in %q", field)
		}
	}
}

func source(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	below, _ := filepath.Glob("a*/*.go") // actions, ask
	files = slices.DeleteFunc(append(files, below...), func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	var all strings.Builder
	for _, name := range append(files, "words/texts.go") {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}

func TestLanguageChoice(t *testing.T) {
	p := New(testSource(nil))
	for _, tt := range []struct{ query, accept, want string }{
		{"", "", "en"},
		{"", "de,fr;q=0.5", "en"},
		{"", "zh-CN,zh;q=0.9,en;q=0.8", "zh-Hans"},
		{"", "zh-TW", "zh-Hans"},
		{"", "en-GB,zh;q=0.5", "en"},
		{"", ";;;q=", "en"},
		{"", "en;q=0.1, ZH-hant-TW ; q=0.2", "zh-Hans"},
		{"", "zh;q=0", "en"},
		{"", "zh;q=NaN, zhx, en-zh", "en"},
		{"", "zh;q=x, en;q=0.1", "en"},
		{"?lang=zh", "en", "zh-Hans"},
		{"?lang=en", "zh", "en"},
		{"?lang=xx", "zh", "zh-Hans"},
	} {
		body := get(t, p, "/"+tt.query, "Accept-Language", tt.accept).Body.String()
		if !strings.Contains(body, `<html lang="`+tt.want+`">`) {
			t.Errorf("%q, %q: not in %s", tt.query, tt.accept, tt.want)
		}
	}
	wantText(t, get(t, p, "/?lang=zh&key=a&by=bucket").Body.String(),
		`href="/?by=bucket&amp;key=a&amp;lang=en"`, `<input type="hidden" name="lang" value="zh">`, "历史")
}

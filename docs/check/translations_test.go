package check

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// translations maps documents to their Chinese versions.
var translations = map[string]string{
	"README.md":        "README.zh-CN.md",
	"docs/RECIPES.md":  "docs/RECIPES.zh-CN.md",
	"docs/LIMITERS.md": "docs/LIMITERS.zh-CN.md",
}

// Shared parts in the same order: blocks, pictures, sections, commands and table rows.
var (
	anyBlock  = regexp.MustCompile("(?ms)^```[^\n]*\n.*?^```$")
	sameParts = regexp.MustCompile("srcset=\"[^\"]*\"|src=\"[^\"]*\"|(?m)^#+ |`CL\\.[^`]*`|^\\|")
	picture   = regexp.MustCompile(`<img [^>]*>|!\[[^\]]*\]`)
	describes = regexp.MustCompile(`alt="[^"]{20,}"|!\[[^\]]{20,}\]`)
	code      = regexp.MustCompile("`[^`]*`")
)

// TestTranslations: a translation has the original's blocks byte for byte, so a test of one covers both, and
// the same sections, pictures, commands and rows; other code spans may be reordered. With UPDATE_DOCS set, it
// copies the blocks.
func TestTranslations(t *testing.T) {
	for document, translation := range translations {
		original, translated := read(t, document), read(t, translation)
		blocks, copies := anyBlock.FindAllString(original, -1), anyBlock.FindAllString(translated, -1)
		if len(blocks) != len(copies) {
			t.Errorf("%s has %d blocks, and %s %d", document, len(blocks), translation, len(copies))
			continue
		}
		if os.Getenv("UPDATE_DOCS") != "" && !slices.Equal(blocks, copies) {
			left := blocks
			update(t, translation, anyBlock.ReplaceAllStringFunc(translated, func(string) string {
				block := left[0]
				left = left[1:]
				return block
			}))
			continue
		}
		for i, block := range blocks {
			if block != copies[i] {
				t.Errorf("%s has\n%s\nand %s\n%s", document, block, translation, copies[i])
			}
		}
		english, chinese := partsOf(t, document, original), partsOf(t, translation, translated)
		for i := range max(len(english), len(chinese)) {
			if i >= min(len(english), len(chinese)) || english[i] != chinese[i] {
				t.Errorf("%s and %s differ from part %d on: %q and %q", document, translation, i, english[i:], chinese[i:])
				break
			}
		}
		if english, chinese := codesOf(original), codesOf(translated); !slices.Equal(english, chinese) {
			t.Errorf("%s and %s differ in what is code:\n%q\n%q", document, translation, english, chinese)
		}
		for from, to := range map[string]string{original: translation, translated: document} {
			if name := to[strings.LastIndex(to, "/")+1:]; !strings.Contains(strings.Join(strings.Split(from, "\n")[:5], "\n"), "]("+name+")") {
				t.Errorf("no link to %s at the top of the other language", to)
			}
		}
	}
}

// TestBoldEnds: Markdown ends no bold text between a full stop and a Chinese character, as in **吗？**字.
func TestBoldEnds(t *testing.T) {
	for _, translation := range translations {
		for _, line := range strings.Split(anyBlock.ReplaceAllString(read(t, translation), ""), "\n") {
			parts := strings.Split(code.ReplaceAllString(line, ""), "**")
			for at := 1; at+1 < len(parts); at += 2 {
				if openEnd.MatchString(parts[at] + "**" + parts[at+1]) {
					t.Errorf("%s: %q does not end; put its last character behind the **", translation, parts[at])
				}
			}
		}
	}
}

var openEnd = regexp.MustCompile(`\p{P}\*\*[\p{L}\p{N}]`)

// partsOf returns the parts other than blocks that a translation shares.
func partsOf(t *testing.T, document, text string) (parts []string) {
	t.Helper()
	for _, image := range picture.FindAllString(text, -1) {
		if !describes.MatchString(image) {
			t.Errorf("%s: no alternative text: %s", document, image)
		}
	}
	for _, line := range strings.Split(anyBlock.ReplaceAllString(text, ""), "\n") {
		parts = append(parts, sameParts.FindAllString(line, -1)...)
	}
	if len(parts) < 40 {
		t.Errorf("%s: only %d parts: %q", document, len(parts), parts)
	}
	return parts
}

// codesOf returns the code spans outside blocks, sorted.
func codesOf(text string) (codes []string) {
	for _, c := range code.FindAllString(anyBlock.ReplaceAllString(text, ""), -1) {
		codes = append(codes, strings.Join(strings.Fields(c), " "))
	}
	slices.Sort(codes)
	return codes
}

func read(t *testing.T, document string) string {
	t.Helper()
	b, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

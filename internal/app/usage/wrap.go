package usage

import "strings"

// Wrap fills paragraphs, except those with indented lines.
func Wrap(text string, width int) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if IsTable(p) {
			continue
		}
		var b strings.Builder
		column := 0
		for _, word := range strings.Fields(p) {
			switch {
			case column == 0:
			case column+1+len(word) > width:
				b.WriteByte('\n')
				column = 0
			default:
				b.WriteByte(' ')
				column++
			}
			b.WriteString(word)
			column += len(word)
		}
		paragraphs[i] = b.String()
	}
	return strings.Join(paragraphs, "\n\n")
}

// IsTable reports whether a paragraph is left as it is.
func IsTable(paragraph string) bool {
	return strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n ")
}

package dashboard

import (
	"embed"
	"strings"
)

//go:embed style/*.css script/*.js
var files embed.FS

// style returns the page's style sheet: later files may override earlier ones.
func style() string {
	return joined("style", ".css", "base", "tiles", "charts", "tables", "drawer", "actions", "last")
}

// script returns the page's script: each file uses those before it.
func script() string {
	return "\"use strict\";\n{\n" + joined("script", ".js", "format", "samples", "morph", "chart", "board", "live", "drawer", "actions", "copy") + "}\n"
}

func joined(dir, extension string, names ...string) string {
	var b strings.Builder
	for _, name := range names {
		text, _ := files.ReadFile(dir + "/" + name + extension) // embedded, so it exists
		b.Write(text)
	}
	return b.String()
}

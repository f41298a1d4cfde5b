package dashboard

import (
	"embed"
	"strings"
)

var (
	//go:embed style.css
	styleCSS string
	//go:embed script/*.js
	scriptFiles embed.FS
)

// script returns the page's script: each file uses those before it.
func script() string {
	var b strings.Builder
	b.WriteString("\"use strict\";\n{\n")
	for _, name := range []string{"format", "samples", "morph", "chart", "board", "live", "look", "copy"} {
		text, _ := scriptFiles.ReadFile("script/" + name + ".js") // embedded, so it exists
		b.Write(text)
	}
	b.WriteString("}\n")
	return b.String()
}

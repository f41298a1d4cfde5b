package dashboard

import _ "embed"

var (
	//go:embed style.css
	styleCSS string

	//go:embed script/format.js
	formatJS string
	//go:embed script/samples.js
	samplesJS string
	//go:embed script/morph.js
	morphJS string
	//go:embed script/chart.js
	chartJS string
	//go:embed script/board.js
	boardJS string
	//go:embed script/live.js
	liveJS string
	//go:embed script/look.js
	lookJS string
	//go:embed script/copy.js
	copyJS string
)

// script returns the page's script: each file uses those before it.
func script() string {
	return "\"use strict\";\n{\n" + formatJS + samplesJS + morphJS + chartJS + boardJS + liveJS + lookJS + copyJS + "}\n"
}

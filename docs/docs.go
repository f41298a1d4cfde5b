// Package docs embeds the documents that the server serves itself.
package docs

import _ "embed" // for the directive below

//go:embed runbook.html
var runbook string

// Runbook returns OPERATIONS.md in HTML.
func Runbook() string { return runbook }

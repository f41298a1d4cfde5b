// Package docs embeds the documents that the server serves itself.
package docs

import _ "embed" // for the directive below

//go:embed OPERATIONS.md
var operations string

// Operations returns the runbook in Markdown.
func Operations() string { return operations }

package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"cellserver/adapters/go/internal/servertest"
)

// TestReadme runs the README's call as printed, apart from the ports, the id and the time.
func TestReadme(t *testing.T) {
	servertest.Need(t, "curl", "bash")
	p := open(t, nil)
	b, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), "### A proxy before a model")
	_, text, _ = strings.Cut(text, "$ curl")
	text, _, _ = strings.Cut(text, "\n```")
	command, want, _ := strings.Cut(text, "\nHTTP/")
	command = strings.ReplaceAll("curl"+command, "127.0.0.1:8000", p.proxy.addr)
	out, err := exec.CommandContext(t.Context(), "bash", "-c", command).CombinedOutput()
	if err != nil {
		t.Error(err)
	}
	differs := regexp.MustCompile(`"id":"\w+"|Tokens: \w+s`)
	got := differs.ReplaceAllString(strings.ReplaceAll(strings.TrimSpace(string(out)), "\r", ""), "")
	if got != differs.ReplaceAllString("HTTP/"+want, "") {
		t.Errorf("%s\n%s\nwant\nHTTP/%s", command, out, want)
	}
}

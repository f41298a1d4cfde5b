package program

import (
	"context"
	"errors"
	"strings"
	"testing"

	"cellserver/lab/clients/internal/report"
)

func shell(script string, restart func(context.Context) error) Program {
	return Program{Dir: ".", Argv: []string{"sh", "-c", script}, Env: map[string]string{"GREETING": "hello"}, Restart: restart}
}

func TestRunGathersReports(t *testing.T) {
	restarts := 0
	result, err := Run(t.Context(), shell(`
		echo '{"version": "1.2"}'
		echo '{"check": "url", "ok": true}'
		echo "{\"check\": \"tls\", \"error\": \"$GREETING\"}"
		echo '{"check": "watch", "skip": "no API"}'
		echo '{"check": "eval", "skip": "no API"}'
		echo '{"check": "pool"}'
		echo RESTART
		read -r answer
		test "$answer" = restarted && echo '{"check": "reconnect", "ok": true}'
		exit 1`,
		func(context.Context) error { restarts++; return nil }))
	if err != nil || restarts != 1 || result.Version != "1.2" || len(result.Notes) != 1 || result.Notes[0] != "no API" {
		t.Errorf("%+v, %v, %d restarts", result, err, restarts)
	}
	for check, want := range map[string]report.Line{
		"url":       {Check: "url", OK: true},
		"tls":       {Check: "tls", Error: "hello"},
		"watch":     {Check: "watch", Skip: "no API"},
		"pool":      {Check: "pool", Error: "the program gave no reason"},
		"reconnect": {Check: "reconnect", OK: true},
	} {
		if got := result.Checks[check]; got != want {
			t.Errorf("%s is %+v, want %+v", check, got, want)
		}
	}
}

func TestRunFails(t *testing.T) {
	broken := errors.New("the server does not start")
	for _, test := range []struct{ name, script, want string }{
		{"it ends with an error", `echo '{"check": "url", "ok": true}'; echo oh no >&2; exit 3`, "exit status 3: oh no"},
		{"it prints something else", `echo hello; exec sleep 60`, `"hello", which is not a report`},
		{"it prints an unknown field", `echo '{"chekc": "url"}'; exec sleep 60`, "unknown field"},
		{"it reports twice", `echo '{"check": "url", "ok": true}'; echo '{"check": "url", "ok": true}'; exec sleep 60`, "reports url twice"},
		{"the server does not come back", `echo RESTART; read -r answer; exec sleep 60`, broken.Error()},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Run(t.Context(), shell(test.script, func(context.Context) error { return broken }))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
	if _, err := Run(t.Context(), Program{Argv: []string{"/nonexistent"}}); err == nil {
		t.Error("no error for a program that is not there")
	}
}

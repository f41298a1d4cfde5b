package actions

import (
	"encoding/json"
	"net/http"
	"strings"
)

// logged is the message of the audit's lines.
const logged = "page action"

// Question asks to confirm an action.
type Question struct {
	Token   string      `json:"token"` // to be sent once as confirm
	Title   string      `json:"title"`
	Entries [][2]string `json:"entries"`
	Command string      `json:"command"` // to be executed
	Yes     string      `json:"yes"`
	No      string      `json:"no"`
}

// Outcome is that of an action.
type Outcome struct {
	Text   string
	Failed bool
}

// answer is what a script is told.
type answer struct {
	User  string    `json:"user,omitempty"`
	Ask   *Question `json:"ask,omitempty"`
	Done  string    `json:"done,omitempty"`
	Error string    `json:"error,omitempty"`

	problem string // of signing in
}

func (q *request) wantsJSON() bool {
	return strings.Contains(q.r.Header.Get("Accept"), "application/json")
}

// answer answers a script, or has the page show it to a browser without.
func (q *request) answer(status int, a answer) {
	if q.wantsJSON() {
		q.w.Header().Set("Content-Type", "application/json")
		q.w.WriteHeader(status)
		_ = json.NewEncoder(q.w).Encode(a)
		return
	}
	var outcome *Outcome
	if text := a.Done + a.Error; text != "" {
		outcome = &Outcome{Text: text, Failed: a.Error != ""}
	}
	q.sessions.show(q.token(), a.Ask, outcome, q.config.Now())
	back := q.r.URL.Query() // of the page, which the form's address repeats
	back.Del("signin")
	if a.problem != "" {
		back.Set("signin", a.problem)
	}
	q.w.Header().Set("Location", "/?"+back.Encode())
	q.w.WriteHeader(http.StatusSeeOther)
}

// refuse answers what the page has not sent.
func (q *request) refuse(status int, why string) {
	if count := q.refused.Due(q.config.Now()); count > 0 {
		q.config.Log.Info(logged, "client", q.peer.Addr, "result", "refused", "reason", why, "count", count)
	}
	if q.wantsJSON() {
		q.answer(status, answer{Error: why})
		return
	}
	http.Error(q.w, why, status)
}

// State is what the page shows to a browser.
type State struct {
	User     string // empty unless signed in
	Problem  string // of signing in, for the function of this name
	Question *Question
	Outcome  *Outcome
	// IsTrusted reports whether the browser says where a request comes from, without which no action is
	// executed.
	IsTrusted bool
}

// State returns what the page shows. Only one that takes an outcome is given it.
func (h *Handler) State(r *http.Request, takes bool) State {
	s := State{Problem: r.URL.Query().Get("signin"), IsTrusted: r.Header.Get("Sec-Fetch-Site") != ""}
	if token := tokenOf(r); token != "" {
		s.User, s.Question, s.Outcome = h.sessions.look(token, takes, h.config.Now())
	}
	return s
}

package dashboard

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/dashboard/actions"
	"cellserver/internal/edge/dashboard/ask"
	"cellserver/internal/resp"
)

// acting returns what the actions show to a browser. An outcome is shown once, and not by an update.
func (p *Page) acting(r *http.Request) actions.State {
	if p.source.Actions == nil {
		return actions.State{}
	}
	return p.source.Actions.State(r, r.URL.Path == "/" && r.Method == http.MethodGet)
}

// keyActions returns the forms that act on a key, or why there are none.
func (v *view) keyActions(a *ask.Answer) g.Node {
	key, limit, db := a.Name, "", strconv.Itoa(int(a.DB))
	if a.Limit != nil {
		limit = a.Limit.Name
		key = bytes.TrimPrefix(key, []byte(limit+":"))
	}
	fields := []g.Node{hidden("key", resp.Quote(key)), hidden("db", db), hidden("limit", limit)}
	return v.acts(db+":"+resp.Quote(a.Name), func() g.Node {
		t := v.t
		forms := g.Group{v.act(actions.Reset, t.ActReset, fields)}
		if of := refundOf(a); of != "" {
			units := t.ActUnits
			if a.Limit != nil && a.Limit.Unit == namedlimit.USD {
				units = t.ActMicros
			}
			forms = append(forms, v.act(actions.Refund, t.ActRefund, append(slices.Clip(fields), hidden("of", of)), v.input("units", units, "1")))
		}
		if a.Limit != nil {
			forms = append(forms, v.overrideForm(fields))
			if v.remote == nil {
				forms = append(forms, v.act(actions.EndOverride, t.ActEndOverride, fields))
			}
		}
		return forms
	})
}

// refundOf returns by which limit units are refunded, as the form sends it; empty for none.
func refundOf(a *ask.Answer) string {
	_, numbers, known := strings.Cut(a.By, " ")
	switch {
	case a.Limit != nil:
		return a.Kind.String()
	case known && actions.Refunds(a.Kind):
		return a.Kind.String() + " " + numbers
	}
	return ""
}

// limitActions returns the forms that act on a named limit, or why there are none.
func (v *view) limitActions(l *namedlimit.Limit) g.Node {
	fields := []g.Node{hidden("limit", l.Name)}
	return v.acts(l.Name, func() g.Node {
		t := v.t
		shadow := v.act(actions.Shadow, t.ActShadow, fields)
		switch {
		case l.Source == namedlimit.ByFile:
			shadow = el("p", class("soft"), text(t.ActByFile))
		case l.Shadow:
			shadow = v.act(actions.EndShadow, t.ActEndShadow, fields)
		}
		return g.Group{shadow, v.overrideForm(fields, v.input("key", t.Key, ""))}
	})
}

func (v *view) overrideForm(fields []g.Node, first ...g.Node) g.Node {
	t := v.t
	if v.remote != nil {
		return el("p", class("soft"), text(t.ActOverRemote))
	}
	return v.act(actions.Override, t.ActOverride, fields, append(first, v.input("policy", t.ActPolicy, "DENY"), v.input("seconds", t.ActSeconds, ""))...)
}

// acts frames forms on a target, for which alone they keep what was typed. A browser that cannot act is told
// why, and one without a user gets a form to sign in.
func (v *view) acts(target string, forms func() g.Node) g.Node {
	if v.page.source.Actions == nil {
		return nil
	}
	t, s := v.t, &v.acting
	var inside g.Node
	switch {
	case v.isReplica():
		inside = el("p", text(t.ActReplica))
	case s.User == "" && !s.HasUsers:
		inside = el("p", text(t.ActNoUser))
	case !s.IsTrusted:
		inside = el("p", text(t.ActNotTrusted))
	case s.User == "":
		inside = v.signInForm()
	default:
		inside = g.Group{v.outcome(), v.question(), forms(), v.signOutForm()}
	}
	return el("section", class("acts"), attr("data-k", "acts "+target), attr("data-away", t.ActNoReply), attr("data-cut", t.ActUnknown), attr("data-close", t.Close), el("h3", text(t.ActHeading)), inside)
}

// form returns a form to one of the actions' paths, which sends the browser back to this address. Scripts
// write into its last paragraph.
func (v *view) form(name, path string, inside ...g.Node) g.Node {
	return el("form", attr("data-k", "act-"+name), attr("data-act", name), attr("method", "post"), attr("action", path+strings.TrimPrefix(v.withChoice("signin", ""), "/")),
		hidden("lang", v.t.Lang[:2]), g.Group(inside), el("p", class("told"), flag("data-own")))
}

func hidden(name, value string) g.Node {
	return el("input", attr("type", "hidden"), attr("name", name), attr("value", value))
}

func (v *view) input(name, label, value string) g.Node {
	return el("label", el("span", text(label)), el("input", attr("name", name), attr("value", value), attr("autocomplete", "off"), attr("autocapitalize", "none"),
		attr("spellcheck", "false")))
}

func button(label string, more ...g.Node) g.Node {
	return el("button", attr("type", "submit"), g.Group(more), text(label))
}

func (v *view) act(name, label string, fields []g.Node, inputs ...g.Node) g.Node {
	return v.form(name, actions.ActPath, hidden("action", name), g.Group(fields), g.Group(inputs), button(label))
}

func (v *view) signInForm() g.Node {
	t := v.t
	problem := g.Node(nil)
	if told := actions.Problem(t, v.acting.Problem); told != "" {
		problem = el("p", class("problem"), attr("role", "alert"), text(told))
	}
	return g.Group{problem, el("p", text(t.SignInNote)), v.form("signin", actions.SignInPath,
		el("label", el("span", text(t.UserName)), el("input", attr("name", "name"), flag("required"), attr("autocomplete", "username"), attr("autocapitalize", "none"), attr("spellcheck", "false"))),
		el("label", el("span", text(t.Password)), el("input", attr("name", "password"), attr("type", "password"), flag("required"), attr("autocomplete", "current-password"))),
		button(t.SignIn))}
}

func (v *view) signOutForm() g.Node {
	return v.form("signout", actions.SignOutPath, el("span", class("soft"), text(fmt.Sprintf(v.t.SignedInAs, v.acting.User))), button(v.t.SignOut))
}

// outcome shows what the last action has done, to a browser without scripts.
func (v *view) outcome() g.Node {
	o := v.acting.Outcome
	switch {
	case o == nil:
		return nil
	case o.Failed:
		return el("p", class("problem"), attr("role", "alert"), text(o.Text))
	}
	return el("p", attr("role", "status"), text(o.Text))
}

// question asks to confirm an action, without scripts.
func (v *view) question() g.Node {
	q := v.acting.Question
	if q == nil {
		return nil
	}
	var entries g.Group
	for _, e := range q.Entries {
		entries = append(entries, entry(e[0], e[1]))
	}
	return el("div", class("ask"), el("h4", text(q.Title)), list("list", entries, el("div", el("dt", text(v.t.Command)), el("dd", el("code", text(q.Command))))),
		v.form("confirm", actions.ActPath, hidden("confirm", q.Token), button(q.Yes), button(q.No, attr("name", "cancel"), attr("value", "1"))))
}

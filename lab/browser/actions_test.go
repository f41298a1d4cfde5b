package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/redis/go-redis/v9"
)

const actingUsers = "user default on nopass ~* &* +@all\nuser ann on >secret ~* &* +@all\nuser bob on >bobs ~* +cl.refund\n"

// actingServer is a server whose page has actions, and a client of it.
func actingServer(t *testing.T) (*server, *redis.Client) {
	t.Helper()
	users := filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(users, []byte(actingUsers), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := startServer(context.WithoutCancel(t.Context()), t.Output(), "", "--page-actions", "--aclfile", users)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	rdb := newClient(s.redis, 0)
	t.Cleanup(func() { _ = rdb.Close() })
	return s, rdb
}

func (v *visitor) signIn(name, password string) {
	v.t.Helper()
	v.do(chromedp.WaitVisible(chromedp.CSS("[data-act=signin]")))
	eval[chromedp.Void](v, `for (const [name, value] of [["name", `+quoted(name)+`], ["password", `+quoted(password)+`]]) {
		document.querySelector("[data-act=signin] [name=" + name + "]").value = value;
	}`)
	v.click("[data-act=signin] button")
}

func keyExists(t *testing.T, rdb *redis.Client, key string) bool {
	t.Helper()
	n, err := rdb.Exists(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	return n == 1
}

// TestActions: a user signs in and confirms in the dialog. What was done, a missing right and a cut network
// are told beside the button, and to assistive software.
func TestActions(t *testing.T) {
	t.Parallel()
	s, rdb := actingServer(t)
	rdb.Do(t.Context(), "CL.THROTTLE", "k", 4, 1, 3600, 5)
	v := visitWith(t, s.page, false)
	v.open("?lang=en&key=k")
	v.settled()
	v.signIn("ann", "wrong")
	v.until(`document.querySelector("[data-act=signin] .told.problem")?.textContent.startsWith("Wrong name or password")`)
	v.signIn("ann", "secret")
	v.until(`document.querySelector("[data-act=signout]")?.textContent.includes("Signed in as ann")`)
	v.click("[data-act=reset] button")
	v.do(chromedp.WaitVisible(chromedp.CSS("dialog[open]")))
	if got := v.text("dialog"); !strings.Contains(got, "Reset k?") || !strings.Contains(got, "As user\nann") || !strings.Contains(got, "CL.RESET k") {
		t.Errorf("the dialog says %q", got)
	}
	v.click("dialog button[value=no]")
	v.until(`document.querySelector("dialog") === null && document.activeElement.closest("[data-act=reset]") !== null`)
	if !keyExists(t, rdb, "k") {
		t.Error("what was canceled is done")
	}
	v.click("[data-act=reset] button")
	v.do(chromedp.WaitVisible(chromedp.CSS("dialog[open]")))
	v.click("dialog button[value=yes]")
	const told = `document.querySelector("[data-act=reset] .told").textContent`
	v.until(told + ` === "k is reset." && document.querySelector("#spoken").textContent === "k is reset."`)
	if keyExists(t, rdb, "k") {
		t.Error("k is not reset")
	}
	v.refreshed()
	v.until(told + ` === "k is reset."`)

	const units = `document.querySelector("[data-act=refund] [name=units]").value`
	v.find("cl.throttle k 4 1 3600")
	v.until(units + ` === "1"`)
	v.send("#drawer [name=units]", "23")
	v.refreshed()
	v.until(units + `.includes("23")`)
	v.find("cl.throttle j 4 1 3600")
	v.until(`document.querySelector("#drawer-heading .key").textContent === "j" && ` + units + ` === "1"`) // not what was typed for k
	rdb.Do(t.Context(), "CL.THROTTLE", "k", 4, 1, 3600, 5)
	v.find("cl.throttle k 4 1 3600")
	v.until(`document.querySelector("#drawer-heading .key").textContent === "k"`)
	v.click("[data-act=reset] button")
	v.do(chromedp.WaitVisible(chromedp.CSS("dialog[open]")))
	eval[chromedp.Void](v, `history.back()`)
	v.until(`document.querySelector("dialog") === null && document.querySelector("#drawer-heading .key").textContent === "j"`)
	v.find("cl.throttle k 4 1 3600")
	v.until(`document.querySelector("#drawer-heading .key").textContent === "k"`)
	if !keyExists(t, rdb, "k") {
		t.Error("what was not confirmed is done")
	}
	v.click("[data-act=reset] button")
	v.do(chromedp.WaitVisible(chromedp.CSS("dialog[open]")))
	eval[chromedp.Void](v, `document.querySelector("#drawer").replaceChildren()`) // so that no form is left to tell it
	v.click("dialog button[value=yes]")
	v.until(`document.querySelector("dialog[open] h2")?.textContent === "k is reset."`)
	v.click("dialog button")

	rdb.Do(t.Context(), "CL.THROTTLE", "k", 4, 1, 3600, 5)
	v.click("[data-act=signout] button")
	v.signIn("bob", "bobs")
	v.until(`document.querySelector("[data-act=signout]")?.textContent.includes("bob")`)
	v.click("[data-act=reset] button")
	v.do(chromedp.WaitVisible(chromedp.CSS("dialog[open]")))
	v.click("dialog button[value=yes]")
	v.until(`document.querySelector("[data-act=reset] .told.problem")?.textContent === "NOPERM this user has no permissions to run the 'cl.reset' command"`)
	if !keyExists(t, rdb, "k") {
		t.Error("a user without the right has reset k")
	}

	v.click("[data-act=reset] button")
	v.do(chromedp.WaitVisible(chromedp.CSS("dialog[open]")))
	s.stop()
	v.click("dialog button[value=yes]")
	v.until(`document.querySelector("[data-act=reset] .told.problem")?.textContent.startsWith("There was no answer, so the outcome is not known")`)
	v.click("[data-act=reset] button")
	v.until(`document.querySelector("[data-act=reset] .told.problem")?.textContent.startsWith("The server does not answer. Nothing was done.")`)
}

// TestActionsWithoutScripts: plain forms do the same, as browsers send Origin with them, too.
func TestActionsWithoutScripts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	s, rdb := actingServer(t)
	rdb.Do(t.Context(), "CL.LIMIT", "SET", "api", 4, 5, 60)
	rdb.Do(t.Context(), "CL.CHECK", "api", "k", 5)
	v := visit(t, s.page)
	call(v, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	v.open("?lang=en&limit=api&key=k")
	v.signIn("ann", "wrong")
	v.do(chromedp.WaitVisible(chromedp.CSS(".acts .problem")))
	v.signIn("ann", "secret")
	v.do(chromedp.WaitVisible(chromedp.CSS("[data-act=reset]")))
	v.click("[data-act=reset] button")
	v.do(chromedp.WaitVisible(chromedp.CSS(".ask")))
	if got := v.text(".ask"); !strings.Contains(got, "CL.RESET api:k") {
		t.Errorf("the page asks %q", got)
	}
	v.click("[data-act=confirm] button[name=cancel]")
	v.do(chromedp.WaitNotPresent(chromedp.CSS(".ask")))
	v.click("[data-act=reset] button")
	v.do(chromedp.WaitVisible(chromedp.CSS(".ask")))
	v.click("[data-act=confirm] button:first-of-type")
	v.do(chromedp.WaitVisible(chromedp.CSS(".acts [role=status]")))
	if got := v.text(".acts [role=status]"); got != "api:k is reset." || keyExists(t, rdb, "api:k") {
		t.Errorf("the page tells %q", got)
	}
	if query := eval[string](v, "location.search"); query != "?key=k&lang=en&limit=api" {
		t.Errorf("the address is %q", query)
	}
}

// TestActionsAreAccessible: axe-core finds nothing in the forms and in the dialog.
func TestActionsAreAccessible(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	source := axeSource(t)
	s, rdb := actingServer(t)
	rdb.Do(t.Context(), "CL.LIMIT", "SET", "api", 4, 5, 60)
	rdb.Do(t.Context(), "CL.CHECK", "api", "k", 5)
	v := visit(t, s.page)
	check := func(name string) {
		for _, violation := range v.violations(source) {
			t.Errorf("%s: %s", name, violation)
		}
	}
	for _, scheme := range []string{"light", "dark"} {
		v.do(chromedp.EmulateViewport(map[string]int64{"light": 1440, "dark": 390}[scheme], 900), colorScheme(scheme))
		v.open("?lang=en&limit=api&key=k")
		v.do(chromedp.WaitReady(chromedp.CSS("#now .tiles")))
		check(scheme + ", signed out")
		v.signIn("ann", "secret")
		v.do(chromedp.WaitVisible(chromedp.CSS("[data-act=override]")))
		check(scheme + ", signed in")
		v.click("[data-act=reset] button")
		v.do(chromedp.WaitVisible(chromedp.CSS("dialog[open]")))
		check(scheme + ", dialog")
		v.click("dialog button[value=no]")
		v.do(chromedp.WaitNotPresent(chromedp.CSS("dialog")))
		v.open("?lang=zh&limit=api")
		check(scheme + ", a limit")
		v.click("[data-act=signout] button")
		v.do(chromedp.WaitVisible(chromedp.CSS("[data-act=signin]")))
	}
}

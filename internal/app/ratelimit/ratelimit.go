// Package ratelimit reads the environment of envoyproxy/ratelimit, with its defaults, as settings of
// cellserver, which is started in its place. Its functions are safe for concurrent use.
package ratelimit

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"cellserver/internal/app/settings"
	"cellserver/internal/app/usage"
	"cellserver/internal/base/flagvalue"
)

// Name is the name of that program, and of the subcommand.
const Name = "ratelimit"

// UseRedis is the variable that makes the servers of REDIS_URL the store.
const UseRedis = settings.EnvPrefix + "USE_REDIS"

// Complete sets options from the environment. What CELLSERVER_* sets wins.
func Complete(o *settings.Options, lookup Environment) error {
	t, err := translated(lookup)
	if err != nil {
		return usage.Errorf("%w", err)
	}
	fs := o.FlagSet(o.FlagGroups())
	o.Doors.Envoy.Ratelimit = t.options
	t.pauses(&o.Doors.Envoy.XDS)
	if err := o.Complete(fs, t.lookup); err != nil {
		return err
	}
	for flag, s := range t.flags {
		if !t.isOwn(flag) {
			o.From[flag] = s.from // errors name it
		}
	}
	return nil
}

// translation is what the environment means here.
type translation struct {
	values
	own     Environment // cellserver's
	options settings.RatelimitOptions
	flags   map[string]setting // by name
	wrong   []error
}

// setting is a setting's value, and the variable that it comes from.
type setting struct{ value, from string }

func translated(lookup Environment) (*translation, error) {
	v, err := read(lookup)
	if err != nil {
		return nil, err
	}
	t := &translation{values: v, own: withoutImage(lookup), flags: map[string]setting{}}
	t.options.On = true
	t.doors()
	t.tls()
	t.logs()
	t.metrics()
	t.source()
	t.decisions()
	t.store()
	t.check()
	t.warn()
	return t, errors.Join(t.wrong...)
}

// imageSettings are those of the image, which are for cellserver.
func imageSettings() map[string]string {
	return map[string]string{"CELLSERVER_ADDR": ":6380", "CELLSERVER_METRICS_ADDR": ":9380"}
}

// withoutImage hides the settings of the image: in the place of envoyproxy/ratelimit nobody has asked for
// further open ports. All addresses are written as 0.0.0.0 or [::], then.
func withoutImage(lookup Environment) Environment {
	hidden := imageSettings()
	return func(name string) (string, bool) {
		value, ok := lookup(name)
		if ok && value == hidden[name] && value != "" {
			return "", false
		}
		return value, ok
	}
}

// lookup is the environment of cellserver's settings.
func (t *translation) lookup(name string) (string, bool) {
	for flag, s := range t.flags {
		if settings.EnvName(flag) == name && !t.isOwn(flag) {
			return s.value, true
		}
	}
	return t.own(name)
}

// isOwn reports whether a setting is set by cellserver's own variable.
func (t *translation) isOwn(flag string) bool {
	value, ok := t.own(settings.EnvName(flag))
	return ok && value != ""
}

func (t *translation) set(flag, value, from string) { t.flags[flag] = setting{value, from} }

func (t *translation) fail(err error) { t.wrong = append(t.wrong, err) }

// check finds values that a setting does not take.
func (t *translation) check() {
	scratch := &settings.Options{}
	fs := scratch.FlagSet(scratch.FlagGroups())
	for _, flag := range slices.Sorted(maps.Keys(t.flags)) {
		s := t.flags[flag]
		switch err := fs.Set(flag, s.value); {
		case err == nil:
		case s.from == xdsHeaders:
			t.fail(mistake(xdsHeaders, pairs.takes()+", each a header of HTTP/2", t.text(xdsHeaders)))
		default:
			t.fail(flagvalue.Describe(s.from, cmp.Or(t.text(s.from), s.value), err))
		}
	}
}

// address joins the variables of an address. 0.0.0.0 stands for all addresses there, of IPv6, too.
func (t *translation) address(prefix string) string {
	host, port := t.text(prefix+"HOST"), t.whole(prefix+"PORT")
	if port < 0 || port > 1<<16-1 {
		t.fail(mistake(prefix+"PORT", "a port from 1 to 65535, such as 8081", strconv.FormatInt(port, 10)))
		port = 0
	}
	if host == "0.0.0.0" {
		host = ""
	}
	return net.JoinHostPort(host, strconv.FormatInt(port, 10))
}

func (t *translation) doors() {
	o := &t.options
	o.HTTPAddr, o.DebugAddr = t.address(""), t.address("DEBUG_")
	addr, flag := t.address("GRPC_"), "grpc-addr"
	if t.truth("GRPC_SERVER_USE_TLS") {
		flag = "grpc-tls-addr"
	}
	if socket := t.text("GRPC_UDS"); socket == "" {
		t.set(flag, addr, "GRPC_HOST and GRPC_PORT")
	} else if !t.isOwn(flag) {
		o.GRPCUnix = socket
	}
	o.MaxConnectionAge, o.MaxConnectionAgeGrace = t.age("GRPC_MAX_CONNECTION_AGE"), t.age("GRPC_MAX_CONNECTION_AGE_GRACE")
}

func (t *translation) age(name string) time.Duration {
	d := t.period(name)
	if d < 0 {
		t.fail(mistake(name, "a time of at least 0, such as 24h", t.text(name)))
	}
	return d
}

func (t *translation) tls() {
	if !t.truth("GRPC_SERVER_USE_TLS") {
		return
	}
	o := &t.options
	o.GRPCCert, o.GRPCKey = t.text("GRPC_SERVER_TLS_CERT"), t.text("GRPC_SERVER_TLS_KEY")
	o.GRPCClientCA, o.GRPCClientName = t.text("GRPC_CLIENT_TLS_CACERT"), t.text("GRPC_CLIENT_TLS_SAN")
	if o.GRPCCert == "" || o.GRPCKey == "" {
		t.fail(errors.New("GRPC_SERVER_USE_TLS requires GRPC_SERVER_TLS_CERT and GRPC_SERVER_TLS_KEY; set both"))
	}
	if o.GRPCClientName != "" && o.GRPCClientCA == "" {
		o.Warnings = append(o.Warnings, "GRPC_CLIENT_TLS_SAN has no effect: without GRPC_CLIENT_TLS_CACERT no client is asked for a certificate")
	}
}

func (t *translation) logs() {
	levels := map[string]string{
		"panic": "error", "fatal": "error", "error": "error", "warn": "warn", "warning": "warn", "info": "info", "debug": "debug", "trace": "debug",
	}
	given := t.text("LOG_LEVEL")
	level, ok := levels[strings.ToLower(given)]
	if !ok {
		t.fail(mistake("LOG_LEVEL", "panic, fatal, error, warn, info, debug or trace", given))
		level = "warn"
	}
	t.set("log-level", level, "LOG_LEVEL")
	format := "text"
	if strings.EqualFold(t.text("LOG_FORMAT"), "json") {
		format = "json"
	}
	t.set("log-format", format, "LOG_FORMAT")
}

// source says where limits come from. What cellserver's own variables say replaces either source.
func (t *translation) source() {
	o := &t.options
	o.AllFiles, o.IgnoreDotFiles, o.MergeDomains = true, t.truth("RUNTIME_IGNOREDOTFILES"), t.truth("MERGE_DOMAIN_CONFIG")
	o.HealthyWithConfig = t.truth("HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED")
	o.HealthyWithStore = t.truth("REDIS_HEALTH_CHECK_ACTIVE_CONNECTION")
	switch kind := t.text("CONFIG_TYPE"); {
	case kind != "FILE" && kind != "GRPC_XDS_SOTW":
		t.fail(mistake("CONFIG_TYPE", "FILE or GRPC_XDS_SOTW", kind))
	case t.isOwn("envoy-xds"):
		o.AwaitsConfig = !t.truth("FORCE_START_WITHOUT_INITIAL_CONFIG")
	case t.isOwn("envoy-config"):
	case kind == "FILE":
		t.set("envoy-config", filepath.Join(t.text("RUNTIME_ROOT"), t.text("RUNTIME_SUBDIRECTORY"), t.text("RUNTIME_APPDIRECTORY")), "RUNTIME_ROOT")
	default:
		o.AwaitsConfig = !t.truth("FORCE_START_WITHOUT_INITIAL_CONFIG")
		t.xds()
	}
}

func (t *translation) decisions() {
	o := &t.options
	o.NearRatio = t.ratio("NEAR_LIMIT_RATIO")
	if ratio := float64(o.NearRatio); math.IsNaN(ratio) || math.IsInf(ratio, 0) {
		t.fail(mistake("NEAR_LIMIT_RATIO", "a number, such as 0.8", t.text("NEAR_LIMIT_RATIO")))
	}
	o.Shadow, o.Quota, o.StopsWhenOver = t.truth("SHADOW_MODE"), t.truth("QUOTA_MODE"), t.truth("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT")
	if t.truth("LIMIT_RESPONSE_HEADERS_ENABLED") {
		t.set("envoy-headers", "true", "LIMIT_RESPONSE_HEADERS_ENABLED")
		o.HeaderNames = [3]string{t.header("LIMIT_LIMIT_HEADER"), t.header("LIMIT_REMAINING_HEADER"), t.header("LIMIT_RESET_HEADER")}
	}
	if t.truth("RESPONSE_DYNAMIC_METADATA") {
		t.set("envoy-metadata", "true", "RESPONSE_DYNAMIC_METADATA")
	}
}

// header returns a header's name. Another text would stand in the responses of all of Envoy's clients.
func (t *translation) header(name string) string {
	given := t.text(name)
	if given != "" && !isToken(given) {
		t.fail(mistake(name, "a header's name, such as RateLimit-Limit", given))
	}
	return given
}

// isToken reports whether a text is a token of HTTP.
func isToken(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune("\"(),/:;<=>?@[\\]{}", r)
	})
}

// warn lists what is set and does nothing.
func (t *translation) warn() {
	if names := t.unused(); len(names) > 0 {
		t.options.Warnings = append(t.options.Warnings,
			"variables of envoyproxy/ratelimit that have no counterpart here have no effect: "+strings.Join(names, " "))
	}
}

// OwnEnviron returns an environment without what this package reads of cellserver's own prefix.
func OwnEnviron(o *settings.Options, environ []string) []string {
	if !o.Doors.Envoy.Ratelimit.On {
		return environ
	}
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		return strings.HasPrefix(variable, UseRedis+"=")
	})
}

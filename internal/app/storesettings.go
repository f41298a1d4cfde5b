package app

import (
	"strconv"
	"time"

	"cellserver/internal/app/settings"
	"cellserver/internal/base/flagvalue"
	"cellserver/internal/redis/commands/admin"
	"cellserver/internal/store"
)

// storeSettings are the flags about the store, none of them with a password.
func (t *tuning) storeSettings() []admin.Setting {
	r := &t.app.options.Remote
	at := settings.MemoryStore
	if t.app.storage.Remote != nil {
		at = t.app.storage.Remote.Pool.String()
	}
	onOff := map[bool]string{true: "on", false: "off"}
	return []admin.Setting{
		admin.Constant("store", at),
		admin.Constant("store-password-file", r.PasswordFile),
		admin.Constant("store-sentinel-user", r.SentinelUser),
		admin.Constant("store-sentinel-password-file", r.SentinelPasswordFile),
		admin.Constant("store-tls-ca", r.TLSCA),
		admin.Constant("store-tls-cert", r.TLSCert),
		admin.Constant("store-tls-key", r.TLSKey),
		admin.Constant("store-tls-server-name", r.TLSServerName),
		admin.Constant("key-prefix", r.KeyPrefix),
		admin.Constant("store-timeout", strconv.FormatInt(r.Timeout.Milliseconds(), 10)),
		admin.Constant("store-wait", strconv.Itoa(r.Wait)),
		admin.Constant("on-store-error", r.OnError),
		admin.Constant("local-share", strconv.FormatFloat(r.LocalShare, 'g', -1, 64)),
		admin.Constant("prefilter", onOff[r.Prefilter]),
	}
}

// durabilitySettings are Redis's, by what the flags come to, and the flags.
func durabilitySettings(o *settings.Options) []admin.Setting {
	appendFsync := "everysec"
	if o.SyncInterval == 0 {
		appendFsync = "always"
	} else if time.Duration(o.SyncInterval) == store.NoSync {
		appendFsync = "no"
	}
	return []admin.Setting{
		admin.Constant("appendfsync", appendFsync),
		admin.Constant("appendonly", yesNo(o.DataDir != "")),
		admin.Constant("data-dir", o.DataDir),
		admin.Constant("data-recover", yesNo(o.DataRecover)),
		admin.Constant("dir", absolute(o.DataDir)),
		admin.Constant("fsync-interval", o.SyncInterval.String()),
		admin.Constant("fsync-timeout", flagvalue.FormatDuration(o.SyncTimeout)),
		admin.Constant("save", ""),
	}
}

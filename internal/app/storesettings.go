package main

import (
	"strconv"

	"cellserver/internal/redis/commands/admin"
)

// storeSettings are the flags about the store, none of them with a password.
func (t *tuning) storeSettings() []admin.Setting {
	r := &t.app.options.remote
	at := memoryStore
	if t.app.storage.remote != nil {
		at = t.app.storage.remote.pool.String()
	}
	onOff := map[bool]string{true: "on", false: "off"}
	return []admin.Setting{
		admin.Constant("store", at),
		admin.Constant("store-password-file", r.passwordFile),
		admin.Constant("store-sentinel-user", r.sentinelUser),
		admin.Constant("store-sentinel-password-file", r.sentinelPasswordFile),
		admin.Constant("store-tls-ca", r.tlsCA),
		admin.Constant("store-tls-cert", r.tlsCert),
		admin.Constant("store-tls-key", r.tlsKey),
		admin.Constant("store-tls-server-name", r.tlsServerName),
		admin.Constant("key-prefix", r.keyPrefix),
		admin.Constant("store-timeout", strconv.FormatInt(r.timeout.Milliseconds(), 10)),
		admin.Constant("store-wait", strconv.Itoa(r.wait)),
		admin.Constant("on-store-error", r.onError),
		admin.Constant("local-share", strconv.FormatFloat(r.localShare, 'g', -1, 64)),
		admin.Constant("prefilter", onOff[r.prefilter]),
		admin.Constant("lease", onOff[r.lease]),
		admin.Constant("lease-above", strconv.Itoa(r.leaseAbove)),
		admin.Constant("lease-max-units", strconv.Itoa(r.leaseMaxUnits)),
		admin.Constant("lease-time", strconv.FormatInt(r.leaseTime.Milliseconds(), 10)),
	}
}

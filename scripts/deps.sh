#!/usr/bin/env bash
# Installs the Debian packages that the tests require, or lists them if not run as root.
set -euo pipefail

missing=()
# want PACKAGE TEST...: adds the package to the missing ones if the test fails.
want() {
	local package=$1
	shift
	"$@" >/dev/null 2>&1 || missing+=("$package")
}
want ca-certificates test -e /etc/ssl/certs/ca-certificates.crt
want git command -v git
want redis-server command -v redis-server
want redis-tools command -v redis-benchmark
want python3-redis /usr/bin/python3 -c 'import redis'
want python3-limits /usr/bin/python3 -c 'import limits'
want python3-flask-limiter /usr/bin/python3 -c 'import flask_limiter'
want python3-django-redis /usr/bin/python3 -c 'import django_redis'
want ruby-rack-attack ruby -e 'require "rack/attack"'
want ruby-activesupport ruby -e 'require "active_support"; require "active_support/cache"'
want python3-starlette /usr/bin/python3 -c 'import starlette'
want python3-uvicorn /usr/bin/python3 -c 'import uvicorn'
want nodejs command -v node
want npm command -v npm
want default-jdk-headless command -v javac
want shellcheck command -v shellcheck
want curl command -v curl
want openssl command -v openssl
want systemd command -v systemd-analyze
want systemd-container command -v systemd-nspawn
want mmdebstrap command -v mmdebstrap
want rpm command -v rpm
want podman command -v podman
want crun command -v crun
want ruby command -v ruby
want gcc command -v gcc
want libc6-dev test -e /usr/include/stdlib.h
want make command -v make
want pkg-config command -v pkg-config
want libhiredis-dev test -e /usr/include/hiredis/hiredis.h
want php-cli command -v php
want php-redis php -r 'exit(extension_loaded("redis") ? 0 : 1);'
want ruby-redis ruby -e 'require "redis"'
want ruby-connection-pool ruby -e 'require "connection_pool"'
want chromium command -v chromium
want fontconfig command -v fc-list
want fonts-noto-cjk sh -c 'fc-list :lang=zh | grep -q .'
want haproxy command -v haproxy
want nginx-light test -x /usr/sbin/nginx
want caddy command -v caddy
want prometheus command -v promtool
want zsh command -v zsh
want fish command -v fish
want mandoc command -v mandoc
want prometheus-redis-exporter command -v prometheus-redis-exporter

# A Debian to install the package in, as an archive; it takes a minute.
make_debian() {
	local archive=${XDG_CACHE_HOME:-$HOME/.cache}/cellserver/debian-12.tar
	[[ ! -e $archive ]] || return 0
	mkdir -p "${archive%/*}"
	mmdebstrap --quiet --variant=essential --include=systemd,systemd-sysv,passwd bookworm "$archive.$$.tar"
	mv "$archive.$$.tar" "$archive"
}

if ((${#missing[@]} > 0)); then
	if ((EUID != 0)) || ! command -v apt-get >/dev/null; then
		echo "the tests require these Debian packages: sudo apt-get install ${missing[*]}" >&2
		exit 1
	fi
	apt-get update -qq
	# RUNLEVEL=1 keeps the packages redis-server, haproxy, nginx, caddy and prometheus from starting their services.
	RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi
if ((EUID == 0)); then
	make_debian
fi

// Actions: each is confirmed in a dialog. Nothing is repeated by itself, as its outcome may not be known.
const acting = new WeakSet();

const tell = (form, text, isProblem) => {
	const told = form.querySelector(".told");
	told.textContent = text;
	told.classList.toggle("problem", isProblem);
	speak(text);
};

const element = (name, text, properties = {}) => Object.assign(document.createElement(name), { textContent: text, ...properties });

const confirmed = ({ title, entries, command, yes, no }) => new Promise((resolve) => {
	const dialog = element("dialog", ""), list = element("dl", "", { className: "list" }), line = element("p", "");
	for (const [name, value] of entries) {
		const entry = element("div", "");
		entry.append(element("dt", name), element("dd", value));
		list.append(entry);
	}
	line.append(element("code", command));
	const buttons = [element("button", yes, { value: "yes" }), element("button", no, { value: "no" })];
	buttons.forEach((button) => button.addEventListener("click", () => dialog.close(button.value)));
	dialog.append(element("h2", title, { id: "dialog-heading" }), list, line, ...buttons);
	dialog.setAttribute("aria-labelledby", "dialog-heading");
	dialog.addEventListener("close", () => {
		dialog.remove();
		resolve(dialog.returnValue === "yes");
	});
	document.body.append(dialog);
	dialog.showModal();
});

// send returns the server's answer, or what a lost one means.
const send = async (url, fields, lost) => {
	try {
		const reply = await fetch(url, {
			method: "POST", body: new URLSearchParams(fields), cache: "no-store", headers: { Accept: "application/json" }, signal: AbortSignal.timeout(10_000),
		});
		const text = await reply.text();
		return text.startsWith("{") ? JSON.parse(text) : { error: text || String(reply.status) };
	} catch {
		return { error: lost };
	}
};

const act = async (form) => {
	const { away, cut } = form.closest(".acts").dataset, url = form.getAttribute("action"); // an input is named action
	tell(form, "", false);
	let news = await send(url, new FormData(form), away);
	if (news.ask !== undefined) {
		if (!await confirmed(news.ask)) {
			return;
		}
		news = await send(url, { confirm: news.ask.token, lang: form.elements.lang.value }, cut);
	}
	await tick(true);
	const shown = form.isConnected ? form : document.querySelector(".acts form");
	if (shown !== form) {
		byID("drawer-heading")?.focus();
	}
	if (shown !== null) {
		tell(shown, news.error ?? news.done ?? "", "error" in news);
	}
};

document.addEventListener("submit", async (event) => {
	const form = event.target;
	if (!form.matches("form[data-act]")) {
		return;
	}
	event.preventDefault();
	if (!acting.has(form)) {
		acting.add(form);
		await act(form);
		acting.delete(form);
	}
});

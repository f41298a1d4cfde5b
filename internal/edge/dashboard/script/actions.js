// Actions: each is confirmed in a dialog. Nothing is repeated by itself, as its outcome may not be known.
const acting = new WeakSet();

const tell = (form, text, isProblem) => {
	const told = form.querySelector(".told");
	told.textContent = text;
	told.classList.toggle("problem", isProblem);
	speak(text);
};

const element = (name, text, properties = {}) => Object.assign(document.createElement(name), { textContent: text, ...properties });

// answered shows a dialog and returns the value of the button that closes it.
const answered = (title, content, buttons) => new Promise((resolve) => {
	const dialog = element("dialog", "");
	dialog.append(element("h2", title, { id: "dialog-heading" }), ...content);
	for (const [text, value] of buttons) {
		const button = element("button", text, { value });
		button.addEventListener("click", () => dialog.close(value));
		dialog.append(button);
	}
	dialog.setAttribute("aria-labelledby", "dialog-heading");
	dialog.addEventListener("close", () => {
		dialog.remove();
		resolve(dialog.returnValue);
	});
	document.body.append(dialog);
	dialog.showModal();
});

const confirmed = async ({ title, entries, command, yes, no }) => {
	const list = element("dl", "", { className: "list" }), line = element("p", "");
	for (const [name, value] of entries) {
		const entry = element("div", "");
		entry.append(element("dt", name), element("dd", value));
		list.append(entry);
	}
	line.append(element("code", command));
	return await answered(title, [list, line], [[yes, "yes"], [no, "no"]]) === "yes";
};

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
	const section = form.closest(".acts"), url = form.getAttribute("action"); // an input is named action
	const { away, cut, close } = section.dataset;
	tell(form, "", false);
	let news = await send(url, new FormData(form), away);
	if (news.ask !== undefined) {
		if (!await confirmed(news.ask)) {
			return;
		}
		news = await send(url, { confirm: news.ask.token, lang: form.elements.lang.value }, cut);
	}
	await tick(true);
	const shown = form.isConnected ? form : section.querySelector("form"), text = news.error ?? news.done ?? "";
	if (shown?.isConnected) {
		if (shown !== form) {
			byID("drawer-heading")?.focus();
		}
		tell(shown, text, "error" in news);
	} else if (text !== "") {
		await answered(text, [], [[close, "no"]]);
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

// Copy buttons. The Clipboard API requires localhost or TLS, and users may deny it.
const copyText = async (text) => {
	if (await navigator.clipboard?.writeText(text).then(() => true, () => false)) {
		return;
	}
	const area = document.createElement("textarea"), focused = document.activeElement;
	area.value = text;
	area.className = "unseen";
	document.body.append(area);
	area.select();
	const copied = document.execCommand("copy");
	area.remove();
	focused?.focus({ preventScroll: true });
	if (!copied) {
		throw new Error("copy");
	}
};

document.addEventListener("click", async (event) => {
	const button = event.target.closest("button.copy");
	if (button === null) {
		return;
	}
	try {
		await copyText(button.dataset.copy);
		speak(words.copied);
		button.classList.add("done");
		setTimeout(() => button.classList.remove("done"), 1500);
	} catch {
		speak("");
	}
});

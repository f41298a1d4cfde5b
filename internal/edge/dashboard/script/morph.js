// Patches parts of the page in place: unchanged content keeps its nodes, and with them focus, selection and
// open details.

const keyOf = (node) => node.dataset?.k ?? (node.id || null);

// isOurs reports attributes that the reader or this script sets, not the server.
const isOurs = (element, name) =>
	(name === "open" && element.localName === "details") || (name === "hidden" && element.matches("button.copy"));

const patchAttributes = (element, want) => {
	for (const { name, value } of want.attributes) {
		if (!isOurs(element, name) && element.getAttribute(name) !== value) {
			element.setAttribute(name, value);
		}
	}
	for (const { name } of [...element.attributes]) {
		if (!isOurs(element, name) && !want.hasAttribute(name)) {
			element.removeAttribute(name);
		}
	}
};

const patchNode = (node, want) => {
	if (node.nodeType !== Node.ELEMENT_NODE) {
		if (node.data !== want.data) {
			node.data = want.data;
		}
	} else if (!("own" in (node.dataset ?? {}))) {
		patchAttributes(node, want);
		patchChildren(node, want);
	}
};

// matched returns, for each wanted child, the existing child that it is patched into, or itself: the child
// with its key or, without a key, the next of its name.
const matched = (parent, want) => {
	const byKey = new Map(), byName = new Map();
	for (const child of parent.childNodes) {
		const key = keyOf(child);
		if (key !== null) {
			byKey.set(key, child);
		} else {
			byName.set(child.nodeName, [...(byName.get(child.nodeName) ?? []), child]);
		}
	}
	return [...want.childNodes].map((wanted) => {
		const key = keyOf(wanted);
		const child = key === null ? byName.get(wanted.nodeName)?.shift() : byKey.get(key);
		if (child === undefined || child.nodeName !== wanted.nodeName) {
			return wanted;
		}
		byKey.delete(key);
		patchNode(child, wanted);
		return child;
	});
};

// patchChildren replaces a parent's children. A child that holds the selection or the focus stays in place,
// and the others are moved around it.
const patchChildren = (parent, want) => {
	const children = matched(parent, want), stay = new Set(children);
	for (const child of [...parent.childNodes]) {
		if (!stay.has(child)) {
			child.remove();
		}
	}
	const held = children.findIndex((child) => child.parentNode === parent &&
		(child.contains(getSelection().anchorNode) || child.contains(document.activeElement)));
	let next = children[held] ?? null;
	for (const child of children.slice(0, Math.max(held, 0)).reverse()) {
		if (child.nextSibling !== next || child.parentNode !== parent) {
			parent.insertBefore(child, next);
		}
		next = child;
	}
	let last = children[held] ?? null;
	for (const child of children.slice(held + 1)) {
		const after = last === null ? parent.firstChild : last.nextSibling;
		if (child !== after) {
			parent.insertBefore(child, after);
		}
		last = child;
	}
};

// morph patches an element's content to be this HTML. A selection that was moved is restored.
const morph = (element, html) => {
	const want = element.cloneNode(false), selection = getSelection(), focused = document.activeElement;
	want.innerHTML = html;
	const { anchorNode, anchorOffset, focusNode, focusOffset, isCollapsed } = selection;
	patchChildren(element, want);
	if (!isCollapsed && anchorNode.isConnected && focusNode.isConnected &&
		(selection.anchorNode !== anchorNode || selection.anchorOffset !== anchorOffset ||
			selection.focusNode !== focusNode || selection.focusOffset !== focusOffset)) {
		const within = (node, offset) => Math.min(offset, node.length ?? node.childNodes.length);
		selection.setBaseAndExtent(anchorNode, within(anchorNode, anchorOffset), focusNode, within(focusNode, focusOffset));
	}
	if (focused !== document.activeElement && focused?.isConnected) {
		focused.focus({ preventScroll: true });
	}
};

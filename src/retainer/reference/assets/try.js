// Swagger UI over the document of this server. The key stays in the memory of the page.
const key = document.getElementById("key");
key.form.addEventListener("submit", (event) => event.preventDefault());

SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#try",
  deepLinking: true,
  docExpansion: "none",
  filter: true,
  defaultModelsExpandDepth: -1,
  persistAuthorization: false,
  validatorUrl: null,
  tryItOutEnabled: true,
  // Its own scrolling ignores what stands above: the operation would lie behind the key.
  plugins: [{ statePlugins: { layout: { wrapActions: { scrollToElement: () => (operation) => requestAnimationFrame(() => operation.firstChild.scrollIntoView()) } } } }],
  onComplete: () => { document.querySelector(".operation-filter-input").placeholder = "Filter by resource"; },
  requestInterceptor: (request) => {
    if (key.value && !request.loadSpec) request.headers.Authorization = `Bearer ${key.value.trim()}`;
    return request;
  },
});

// Swagger UI over the document of this server. The key stays in the memory of the page.
SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#try",
  deepLinking: false,
  docExpansion: "none",
  filter: true,
  defaultModelsExpandDepth: -1,
  persistAuthorization: false,
  validatorUrl: null,
  tryItOutEnabled: true,
});

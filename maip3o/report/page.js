// Replays of the report page: a player takes the place of its button when that is pressed.
const replayEpisodes = JSON.parse(document.getElementById("data").textContent);
document.querySelectorAll("[data-replay]").forEach((button) => {
  button.addEventListener("click", () => {
    const place = button.parentElement, player = document.createElement("div");
    place.replaceChildren(player);
    mountReplay(player, replayEpisodes[Number(button.dataset.replay)]).play(true);
  });
});
